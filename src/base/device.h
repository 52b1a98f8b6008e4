// Where memory lies.
#pragma once

#include <cstdint>

namespace regatta::base {

enum class Device : uint8_t { kCpu, kCuda };

}  // namespace regatta::base
