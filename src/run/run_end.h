// How a run ended, if it did not fail.
// Thread-safety: plain values. Invariant: all workers of a job end alike.
#pragma once

#include <cstdint>

namespace regatta::run {

struct RunEnd {
  enum class Kind : uint8_t {
    kFinished,
    kStopped,  // by a signal, here or at another worker
    kOutOfTime,
    kGivenUp  // another worker did, and its log says why
  };
  Kind kind = Kind::kFinished;
  int signal = 0;  // of kStopped
};

}  // namespace regatta::run
