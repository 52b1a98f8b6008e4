// gRPC's and protobuf's own words, through glog, and not more of them than a log can bear: any peer that reaches a port
// makes gRPC write a line with every connection that fails, and protobuf one with every text that is not UTF-8.
// Thread-safety: for the first lines of main.
#pragma once

namespace regatta::wire {

// From now on a place in their code writes a line in ten seconds, which tells the number of those that it did not.
void LogThroughGlog();

}  // namespace regatta::wire
