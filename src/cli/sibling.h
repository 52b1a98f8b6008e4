// Executables that stand beside `regatta` and take over its process: regatta-train, regatta-pserver.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regatta::cli {

// Replaces this process by `program` of the folder that holds this executable, with `words` behind its name; returns
// only where that fails. `hint` says what to do where the program is not there.
absl::Status ExecSibling(const std::string& program, const std::vector<std::string>& words, std::string_view hint);

}  // namespace regatta::cli
