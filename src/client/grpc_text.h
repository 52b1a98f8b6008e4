// Reads causes of a failed connection from the texts of gRPC and the C library. gRPC reports every failure of a
// connection by one code (UNAVAILABLE) and tells the cause only in words. The words are matched here and nowhere else;
// grpc_text_test.cc fails if a version of gRPC words them otherwise.
// Thread-safety: pure functions.
#pragma once

#include "base/status.h"

namespace regatta::client {

// The host answered that nobody listens on the port: the process that did has ended.
bool SaysRefused(const absl::Status& status);

// Nobody could be reached: refused, no route, no such name, no answer in time. False: somebody answered, but not as a
// server of ours would.
bool SaysNobody(const absl::Status& status);

// The call was cancelled by gRPC in a server that ends, not by this process and not by a server's own decision, which
// has words: nobody has answered it.
bool SaysCutOff(const absl::Status& status);

}  // namespace regatta::client
