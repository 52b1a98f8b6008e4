// The end of a log file, for the message about a process that failed.
// Thread-safety: a pure function of the file.
#pragma once

#include <string>

namespace regatta::launch {

// At most `lines` last lines and 8 KiB, each line with `indent` in front; "" of a file that is empty or cannot be read.
std::string LastLines(const std::string& path, int lines, const std::string& indent);

}  // namespace regatta::launch
