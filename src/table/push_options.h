// How a push is applied; the same for sparse and dense tables.
// Thread-safety: plain values.
#pragma once

#include <cstdint>

#include "base/named.h"

namespace regatta::table {

// What a push does with a gradient that holds NaN or Inf (docs/rules.md).
enum class NanPolicy : uint8_t { kSkip, kAbort, kClip };
inline constexpr base::Named<NanPolicy> kNanPolicies[] = {
    {"skip", NanPolicy::kSkip}, {"abort", NanPolicy::kAbort}, {"clip", NanPolicy::kClip}};
static_assert(base::InOrder(kNanPolicies));
constexpr const char* Name(NanPolicy policy) { return base::NameIn(kNanPolicies, policy); }

struct PushOptions {
  uint64_t step = 0;     // the schedule's argument
  uint32_t samples = 1;  // the gradients are sums over so many samples
  NanPolicy nan_policy = NanPolicy::kSkip;
  bool finite = false;  // the gradients are known to hold neither NaN nor Inf
};

}  // namespace regatta::table
