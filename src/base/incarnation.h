// A number that tells one life of a process from its other lives, and one job from another.
// Thread-safety: concurrent.
#pragma once

#include <cstdint>
#include <random>

namespace regatta::base {

// Random, never 0.
inline uint64_t NewIncarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

}  // namespace regatta::base
