// Whether what was printed has arrived: a program whose output is lost has failed.
// Thread-safety: to be called at the begin and the end of main, when nothing else prints.
#pragma once

#include "base/status.h"

namespace regatta::base {

// For the first line of main. Of descriptors 0 to 2, those that are closed are opened on /dev/null: no file of the
// program gets their numbers, and with them what is printed. Writing to stdout is an error then.
void OpenStandardDescriptors();

// Flushes stdout. An error where anything that was ever printed to it got lost, as on a full disk. A pipe whose reader
// has left is none: it has read what it wanted.
absl::Status FlushStandardOutput();

// The exit code at the end of main: `code`, or 1 with a line on stderr where `code` is 0 and the output is lost.
int ExitCodeOf(int code);

}  // namespace regatta::base
