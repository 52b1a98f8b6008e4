// How a push is applied; the same for sparse and dense tables.
#pragma once

#include <cstdint>

namespace regatta::table {

// What a push does with a gradient that holds NaN or Inf (docs/rules.md).
enum class NanPolicy : uint8_t { kSkip, kAbort, kClip };

struct PushOptions {
  uint64_t step = 0;     // the schedule's argument
  uint32_t samples = 1;  // the gradients are sums over so many samples
  NanPolicy nan_policy = NanPolicy::kSkip;
};

}  // namespace regatta::table
