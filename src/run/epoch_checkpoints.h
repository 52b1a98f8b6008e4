// The checkpoints of a run within its epochs, of one process or of a job with servers: when this worker pauses for one,
// and what it does then. With servers it also decides where several workers of sync stop: at a barrier, all before the
// same step, because steps without those that have stopped would be others than without a stop.
// Thread-safety: one call at a time, but for stops_at_barrier and stop_agreed, which are concurrent.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "base/step.h"
#include "run/run_saves.h"
#include "run/session.h"
#include "run/stop_control.h"
#include "run/team_checkpoint.h"
#include "train/pass_meter.h"

namespace regatta::run {

// What checkpoints of a job with servers need.
struct ServerCheckpoints {
  TeamCheckpoint::BeginSnapshot begin_snapshot;
  StepPace steps;
};

class EpochCheckpoints {
 public:
  // Without `servers` the process trains alone, and its saves write.
  EpochCheckpoints(const Session& session, const StopControl& stop, RunSaves& saves, const CheckpointPace& pace,
                   const std::optional<ServerCheckpoints>& servers);

  // The session's epoch begins. `meter` counts it, and lives until the next one begins.
  void BeginEpoch(const train::PassMeter& meter);
  // After BeginEpoch in a process that replaces another one: goes on at the barrier where the others may be.
  absl::Status ComeBack();
  // This worker has made a step: whether it is to pause.
  bool PauseAfterStep();
  // No step is under way: takes part in a checkpoint. A full disk costs the checkpoint, not the run.
  absl::Status AtPause(const base::DataPosition& position);
  // This worker brings no more steps of the epoch: it comes to the others' barriers until all have ended.
  absl::Status AtEnd(const base::DataPosition& position);
  // Whether workers stop at a barrier only; and whether they have agreed to stop at the last one.
  bool stops_at_barrier() const { return team_ != nullptr && team_->agrees_on_stops(); }
  bool stop_agreed() const { return stops_at_barrier() && team_->stop_agreed(); }
  // The run was saved otherwise: steps and minutes count anew.
  void Saved();
  // Waits until the last checkpoint is written.
  absl::Status Finish();

 private:
  StopRequest RequestHere() const;
  absl::Status SaveAlone(const base::DataPosition& position);

  const Session& session_;
  const StopControl& stop_;
  RunSaves& saves_;
  const CheckpointPace pace_;
  const train::PassMeter* meter_ = nullptr;  // of the epoch
  // Alone:
  uint64_t steps_since_save_ = 0;
  std::chrono::steady_clock::time_point last_save_ = std::chrono::steady_clock::now();
  // With servers; null alone. The last: it writes in the background.
  std::unique_ptr<TeamCheckpoint> team_;
};

}  // namespace regatta::run
