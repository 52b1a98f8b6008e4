// How long something took.
// Thread-safety: a pure function of the clock.
#pragma once

#include <chrono>

namespace regatta::base {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace regatta::base
