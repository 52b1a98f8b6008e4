// Checkpoints of a job with servers while it trains. All workers come to a barrier between two steps with what they
// have learnt pushed; the first one begins a snapshot on every server; all go on, and the first one writes the snapshot
// in the background.
//
// When: every `steps` batches of each worker, or every `minutes`. In sync all workers have to pause before the same
// step: the first one says at each barrier after how many batches the next one is, and with `minutes` plans barriers
// more often than it takes snapshots, to come close by what it has seen of the speed. Elsewhere each worker goes by its
// own clock, which barriers set. While one is written, the next by steps waits and the next by time is put off. A
// worker whose data has ended, or that was stopped, comes to every barrier until all have.
//
// In sync several workers also stop at a barrier, all before the same step: they come to a barrier about twice a second
// for it, whether there are checkpoints or not.
// Thread-safety: one call at a time, but for stop_agreed; the writing has a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "checkpoint/model_store.h"
#include "client/remote_snapshot.h"
#include "run/rounds.h"
#include "run/team.h"
#include "run/worker_places.h"

namespace regatta::run {

struct CheckpointPace {
  uint64_t steps = 0;  // batches of a worker; 0 = never
  double minutes = 0;  // 0 = never
  bool periodic() const { return steps > 0 || minutes > 0; }
};

// What the mode says of the steps of a job.
struct StepPace {
  bool together = false;   // all workers make step n together, as in sync
  int batches_a_push = 1;  // the communicator's
};

enum class Attendance : uint8_t { kPaused, kEnded };
enum class StopRequest : uint8_t { kNone, kStop };
// What follows a barrier, for all who came. kStop: somebody asked for it, and not all have ended.
enum class AfterBarrier : uint8_t { kGoOn, kStop, kAllEnded };

class TeamCheckpoint {
 public:
  // Writes a model, in the background.
  using Save = std::function<absl::Status(checkpoint::ModelStore& model)>;
  // What is to be written of a snapshot; called by the first worker at its moment, with everybody's place.
  using Prepare = std::function<Save(const WorkerPlaces& places)>;

  // Begins a snapshot of the servers' tables, while all wait; `number` is above 0 and new.
  using BeginSnapshot = std::function<absl::StatusOr<std::unique_ptr<client::RemoteSnapshot>>(uint64_t number)>;

  TeamCheckpoint(Team& team, const CheckpointPace& pace, const StepPace& steps, BeginSnapshot begin_snapshot,
                 Prepare prepare);
  ~TeamCheckpoint();

  void BeginEpoch(uint64_t epoch);
  // In the place of a worker that died in the epoch, which all had begun `began_at` batches into this worker's data:
  // comes to the last barrier again, and to the one at which the others may be waiting.
  absl::Status ComeBack(uint64_t began_at, const WorkerPlace& mine);
  // This worker has made a step: whether it is to pause, at once in sync.
  bool PauseAfterStep();
  // Every worker calls it as often: paused, and when it has ended, until it returns another than kGoOn.
  absl::StatusOr<AfterBarrier> WaitAtBarrier(Attendance attendance, StopRequest stop, const WorkerPlace& mine);
  // Whether the workers stop at a barrier; and whether one of the epoch's has said so.
  bool agrees_on_stops() const { return sync() && team_.size() > 1; }
  bool stop_agreed() const { return stop_agreed_; }
  // The job was saved otherwise, while all wait: steps and minutes count anew.
  void Saved();
  // Waits until the snapshot is written. A checkpoint that could not be written for want of room, or because a server
  // went away, is said and is no error.
  absl::Status Finish();

 private:
  using Clock = std::chrono::steady_clock;
  using Due = ArrivalMessage::Due;
  struct Gathered;  // what the workers have brought
  struct Verdict {
    Due due = ArrivalMessage::NO;
    bool skipped = false;
    uint64_t plan = 1;
  };

  bool IsDue(uint64_t begun);
  absl::StatusOr<Gathered> Gather(Attendance attendance, StopRequest stop, const WorkerPlace& mine, Due due);
  Verdict Judge(const Gathered& gathered);
  uint64_t PlanNext(const Gathered& gathered, double seconds);
  absl::Status Begin(const Gathered& gathered, Due due);
  absl::Status Write(WorkerPlaces places, const std::string& meter);
  bool writing();
  uint64_t WholePushes(uint64_t batches) const;
  bool sync() const { return together_; }
  bool has_barriers() const { return pace_.periodic() || agrees_on_stops(); }
  // Whether the first worker tells after how many batches the next barrier is.
  bool plans() const { return sync() && (pace_.minutes > 0 || agrees_on_stops()); }

  Team& team_;
  const CheckpointPace pace_;
  const bool together_;
  const uint64_t batches_a_push_;
  const BeginSnapshot begin_snapshot_;
  const Prepare prepare_;

  uint64_t epoch_ = 0;
  uint64_t number_ = 0;          // of the epoch's next barrier
  uint64_t since_barrier_ = 0;   // batches of this worker
  uint64_t since_snapshot_ = 0;  // the same
  uint64_t plan_ = 1;            // batches between the last barrier and the next, where they are planned
  Clock::time_point last_snapshot_ = Clock::now();
  Clock::time_point last_barrier_ = Clock::now();
  uint64_t barrier_at_ = 0;  // the most batches of a worker at the last barrier
  std::atomic<bool> stop_agreed_{false};

  std::unique_ptr<client::RemoteSnapshot> snapshot_;  // begun, to be written
  std::thread writer_;
  base::Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status written_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::run
