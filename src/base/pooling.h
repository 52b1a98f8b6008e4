// How the rows of a bag of ids become one vector.
#pragma once

#include <cstdint>

namespace regatta::base {

// For n ids: kSum adds their rows, kMean divides the sum by n, kSqrtN by √n. kNone leaves them as they are: rows in the
// order of the ids, with offsets that say where each bag begins.
enum class Pooling : uint8_t { kSum, kMean, kSqrtN, kNone };

}  // namespace regatta::base
