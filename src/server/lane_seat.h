// A worker's place at a lane, which outlives its streams: what of its requests has been done. A worker sends again what
// was not answered, in order and with the same numbers, so the last number tells.
// Thread-safety: the lock is held while a request changes tables.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mutex.h"

namespace regatta::server {

struct LaneSeat {
  base::Mutex mu;
  uint64_t incarnation ABSL_GUARDED_BY(mu) = 0;
  uint64_t done ABSL_GUARDED_BY(mu) = 0;  // the last request of that incarnation that was done
  uint64_t open ABSL_GUARDED_BY(mu) = 0;  // the first record of a push of sync that is not whole yet; 0 = none

  bool Did(uint64_t worker_incarnation, uint64_t id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return incarnation == worker_incarnation && id <= done;
  }
  void Note(uint64_t worker_incarnation, uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    done = incarnation == worker_incarnation ? std::max(done, id) : id;  // the log may repeat what a checkpoint has
    incarnation = worker_incarnation;
  }
};

}  // namespace regatta::server
