// Named places where a test makes the process fail: every write, fsync and rename has one.
// REGATTA_FAILPOINTS="save.rename=crash@2,file.write=enospc" arms them: crash ends the process at once as kill -9
// would, stop puts it to sleep as SIGSTOP would, slow takes 5 ms, error returns a Status, enospc an out-of-space one;
// @n fires at the n-th hit only.
// Thread-safety: all functions are concurrent. Costs one relaxed load while nothing is armed.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "base/status.h"

namespace regatta::base {

// Replaces the armed set; "" disarms. An error names the bad part; a name that no place has is one.
absl::Status ArmFailpoints(std::string_view spec);

namespace internal {
extern std::atomic<bool> failpoints_armed;
absl::Status HitFailpoint(std::string_view name);
}  // namespace internal

// OK unless a test armed `name`.
inline absl::Status Failpoint(std::string_view name) {
  if (!internal::failpoints_armed.load(std::memory_order_relaxed)) [[likely]]
    return absl::OkStatus();
  return internal::HitFailpoint(name);
}

}  // namespace regatta::base
