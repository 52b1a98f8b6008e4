// A worker's place at a lane, which outlives its streams and, where workers come back, its process: what of its
// requests has been done. A worker sends again what was not answered, in order and with the same numbers, so the last
// number tells; a process that takes its place sends the batches again that not every lane has. Thread-safety: the lock
// is held while a request changes tables.
// Invariant: one stream at a time changes tables, the newest that has. So at most one push is held, as in a replay of
// the log, which does not tell streams apart.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "base/step.h"

namespace regatta::server {

class OpenPush;

struct WorkerLane {
  base::Mutex mu;
  uint64_t owner ABSL_GUARDED_BY(mu) = 0;  // the incarnation that may change tables; 0 = whoever the roster knows
  uint64_t incarnation ABSL_GUARDED_BY(mu) = 0;
  uint64_t done ABSL_GUARDED_BY(mu) = 0;     // the last request of that incarnation that was done
  uint64_t streams ABSL_GUARDED_BY(mu) = 0;  // opened so far; they are numbered from 1
  uint64_t stream ABSL_GUARDED_BY(mu) = 0;   // the newest that changed tables; 0 = none. Older ones are refused
  uint64_t open ABSL_GUARDED_BY(mu) = 0;     // the first record of a push that is held until it is whole; 0 = none
  OpenPush* held ABSL_GUARDED_BY(mu) =
      nullptr;  // that push, in the stream that brings it, which clears it when it ends
  std::chrono::steady_clock::time_point held_since ABSL_GUARDED_BY(mu);  // when its first frame came
  base::DataPosition learnt ABSL_GUARDED_BY(mu);  // batches that the rank has pushed; where workers come back
  uint64_t next_step ABSL_GUARDED_BY(mu) = 0;     // behind its last push

  uint64_t OpenStream() {
    base::MutexLock lock(mu);
    return ++streams;
  }
  // `push` waits for more frames; record `first` of the log is its first one.
  void Hold(OpenPush& push, uint64_t first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (open != first) held_since = std::chrono::steady_clock::now();
    open = first;
    held = &push;
  }
  void EndHold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    open = 0;
    held = nullptr;
  }
  // No stream that is open now may change tables any more: the worker opens another, and sends again what was not done.
  void Fence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { stream = ++streams; }
  bool Did(uint64_t worker_incarnation, uint64_t id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return incarnation == worker_incarnation && id <= done;
  }
  void Note(uint64_t worker_incarnation, uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    done = incarnation == worker_incarnation ? std::max(done, id) : id;  // the log may repeat what a checkpoint has
    incarnation = worker_incarnation;
  }

  // The rank begins a pass of which `position` was learnt before, or has exchanged as much of it (geo).
  void Begin(const base::DataPosition& position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const base::DataPosition before = std::exchange(learnt, position);
    if (before.pass > position.pass || (before.pass == position.pass && before.low > position.low)) learnt = before;
    if (before.pass != position.pass) return;
    // Of the same pass: what either of them contains.
    const base::DataPosition& behind = learnt == before ? position : before;
    for (uint64_t batch = learnt.low; batch < behind.end(); ++batch)
      if (behind.Contains(batch)) learnt.Add(batch);
  }
  bool Learnt(uint64_t pass, uint64_t batch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return pass < learnt.pass || (pass == learnt.pass && learnt.Contains(batch));
  }
  // Whether all `batches` fit: a worker is never farther than a window ahead of itself.
  bool Fits(uint64_t pass, std::span<const uint64_t> batches) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (pass < learnt.pass) return true;  // nothing will be added
    if (batches.size() == 1 && pass == learnt.pass) return learnt.Fits(batches.front());
    base::DataPosition position = pass > learnt.pass ? base::DataPosition{pass, 0, 0} : learnt;
    for (const uint64_t batch : batches) {
      if (!position.Fits(batch)) return false;
      position.Add(batch);
    }
    return true;
  }
  // A push of step `step`, of `batches` that fit.
  void Learn(uint64_t pass, std::span<const uint64_t> batches, uint64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (pass > learnt.pass) learnt = {pass, 0, 0};
    if (pass == learnt.pass)  // a record of the log may be of an earlier one
      for (const uint64_t batch : batches) learnt.Add(batch);
    next_step = std::max(next_step, step + 1);
  }
};

}  // namespace regatta::server
