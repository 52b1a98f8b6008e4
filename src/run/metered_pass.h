// A pass that is counted and may be stopped: a validation, an evaluation, an inference, or an epoch without
// checkpoints. Thread-safety: as train::PassObserver; `stop` is asked by several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "train/net_spec.h"
#include "train/pass_meter.h"
#include "train/trainer.h"

namespace regatta::run {

class MeteredPass : public train::PassObserver {
 public:
  // `spec` is of the net that runs.
  MeteredPass(uint64_t epoch, const train::NetSpec& spec, std::function<bool()> stop)
      : meter_(epoch, spec), stop_(std::move(stop)) {}

  StepAction AfterStep(const Step& step) override {
    meter_.Add(step);
    return stop_() ? StepAction::kStop : StepAction::kGoOn;
  }
  absl::Status AtPause(const base::DataPosition&) override { return absl::OkStatus(); }
  absl::Status AtEnd(const train::PassEnd&) override { return absl::OkStatus(); }
  absl::Status OnBadLoss(const data::Batch&, absl::Status status) override { return status; }
  bool StopsHere() override { return false; }
  bool StopAsked() override { return stop_(); }

  train::PassMeter& meter() { return meter_; }
  const train::PassMeter& meter() const { return meter_; }

 private:
  train::PassMeter meter_;
  const std::function<bool()> stop_;
};

}  // namespace regatta::run
