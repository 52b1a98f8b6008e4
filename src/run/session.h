// Where a run is, and how it goes from one epoch to the next together with the other workers. `regatta train` and
// programs of one's own stand on it, so both come back alike after a kill.
//
// A process that replaces a killed one begins in the epoch that its predecessor was in. If all workers had finished
// that epoch, there is nothing left to train in it: over() says so, and the rounds that end it are answered as they
// were. This way the process comes to whatever its predecessor had not done between that epoch and the next. For
// example: worker 1 trains epoch 3, all workers agree on its end, worker 1 is killed before the save. The new process
// begins in epoch 3, trains nothing, and comes to the save, where the others wait.
// Thread-safety: one thread, but for what only reads, which the trainer's threads may call during a pass.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "base/step.h"
#include "run/rounds.h"
#include "run/team.h"

namespace regatta::run {

// Where a run begins, for all workers of a job alike, but for the position.
struct SessionStart {
  uint64_t epoch = 0;
  uint64_t first_step = 0;           // of the epoch
  base::DataPosition position = {};  // this worker's, in the epoch
};

class Session {
 public:
  explicit Session(Team& team) : team_(team) {}
  Team& team() const { return team_; }

  // The epoch in which a run that begins at `first_epoch` goes on in this process.
  static uint64_t EpochOf(const Team& team, uint64_t first_epoch);

  // Once. FAILED_PRECONDITION if the servers have forgotten a round that this process needs.
  absl::Status Begin(const SessionStart& start);

  uint64_t epoch() const { return epoch_; }
  uint64_t first_step() const { return first_step_; }  // of the epoch
  const base::DataPosition& position() const { return position_; }
  // Batches of this worker that the epoch began with: those of the save that the job resumed from.
  uint64_t began_at() const { return began_at_; }
  // Whether this process replaces another one and has not finished an epoch yet.
  bool returns() const { return returns_; }
  // Whether all workers had finished the epoch before this process came.
  bool over() const { return team_.Completed(rounds::StepsOf(pass())); }

  // How the workers together ended the epoch's pass.
  absl::StatusOr<EndMessage> EndPass(const EndMessage& mine) { return GatherEnd(team_, pass(), mine); }
  // Every worker's meter of the epoch, by rank. Empty if the epoch is over and the servers have forgotten them.
  absl::StatusOr<std::map<int, Bytes>> GatherMetrics(const std::string& meter);
  // All workers have finished the epoch, `batches` of which were this worker's; the next one begins.
  absl::Status FinishEpoch(uint64_t batches);

 private:
  std::string pass() const { return rounds::EpochName(epoch_); }

  Team& team_;
  uint64_t epoch_ = 0;
  uint64_t first_step_ = 0;
  base::DataPosition position_;
  uint64_t began_at_ = 0;
  bool returns_ = false;
};

}  // namespace regatta::run
