// Takes the files of a folder's logs away from a process that may still have them open.
// Thread-safety: for one thread; no other thread or process opens the folder's logs meanwhile.
#pragma once

#include <string>

#include "base/status.h"

namespace regatta::log {

// Afterwards the logs in `folder`, as PushLog has left them, consist of files that no earlier process can change: what
// it writes to those that it has open goes nowhere. It must have lost the folder's path before. Missing: nothing to do.
absl::Status SealLogs(const std::string& folder);

}  // namespace regatta::log
