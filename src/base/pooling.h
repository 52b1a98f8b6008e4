// How the rows of a bag of ids become one vector.
#pragma once

#include <cstdint>

namespace regatta::base {

enum class Pooling : uint8_t { kSum, kMean };

}  // namespace regatta::base
