// The training pass of one epoch: counts it, takes its checkpoints, and stops it together with the others.
// Thread-safety: as train::PassObserver.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "run/epoch_checkpoints.h"
#include "run/run_observer.h"
#include "run/stop_control.h"
#include "train/pass_meter.h"
#include "train/trainer.h"

namespace regatta::run {

class EpochPass : public train::PassObserver {
 public:
  // `meter` counts the epoch; it may know of batches that an earlier run trained.
  EpochPass(uint64_t epoch, train::PassMeter& meter, EpochCheckpoints& checkpoints, StopControl& stop,
            RunObserver& observer)
      : epoch_(epoch), meter_(meter), checkpoints_(checkpoints), stop_(stop), observer_(observer) {}

  StepAction AfterStep(const Step& step) override {
    meter_.Add(step);
    observer_.AfterStep(step, meter_);
    const bool due = checkpoints_.PauseAfterStep();
    if (!stop_.AfterStep()) return due ? StepAction::kPause : StepAction::kGoOn;
    if (!checkpoints_.stops_at_barrier()) return StepAction::kStop;
    return due ? StepAction::kPause : stop_.IsLate() ? StepAction::kStop : StepAction::kGoOn;
  }
  absl::Status AtPause(const base::DataPosition& position) override { return checkpoints_.AtPause(position); }
  // The others may be waiting for this worker at a barrier.
  absl::Status AtEnd(const train::PassEnd& end) override { return checkpoints_.AtEnd(end.position); }
  absl::Status OnBadLoss(const data::Batch& batch, absl::Status status) override {
    return observer_.OnBadLoss(epoch_, batch, status);
  }
  bool StopsHere() override { return checkpoints_.stop_agreed(); }
  bool StopAsked() override { return stop_.requested() && (!checkpoints_.stops_at_barrier() || stop_.IsLate()); }

 private:
  const uint64_t epoch_;
  train::PassMeter& meter_;
  EpochCheckpoints& checkpoints_;
  StopControl& stop_;
  RunObserver& observer_;
};

}  // namespace regatta::run
