// What a run tells while it goes on, for reports and figures. It decides nothing, but for the words of an error.
// Thread-safety: calls never overlap. AfterStep and OnBadLoss come from the trainer's threads.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "data/batch.h"
#include "train/pass_meter.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::run {

class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // This worker begins an epoch's pass; makes a step of it, which `meter` has counted; has ended it.
  virtual void BeginPass(uint64_t epoch) = 0;
  virtual void AfterStep(const train::PassObserver::Step& step, train::PassMeter& meter) = 0;
  virtual void EndPass() = 0;
  // All workers have trained the epoch, and its save comes next. The report is of all workers at the first one, and of
  // this worker's samples at the others.
  virtual void EpochTrained(train::EpochReport report) = 0;
  // A step of the epoch failed with `status`, because its loss is not a number: what the run ends with.
  virtual absl::Status OnBadLoss(uint64_t epoch, const data::Batch& batch, const absl::Status& status) = 0;
};

}  // namespace regatta::run
