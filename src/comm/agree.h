// How the workers of a job agree on a number: the largest that one of them brings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace regatta::comm {

// Every worker calls it with the same name, and gets the largest value that one of them brings.
using Agree = std::function<absl::StatusOr<uint64_t>(const std::string& name, uint64_t value)>;

}  // namespace regatta::comm
