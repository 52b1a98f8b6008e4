// `regatta train`: the options of a run and its reports, over run::Session and run::EpochLoop.
// Thread-safety: Run is called once; the observer's methods come from the trainer's threads, one at a time.
#pragma once

#include <memory>

#include "base/status.h"
#include "checkpoint/save_root.h"
#include "run/epoch_loop.h"
#include "run/run_end.h"
#include "run/run_observer.h"
#include "run/run_start.h"
#include "run/session.h"
#include "run/stop_control.h"
#include "run/team.h"
#include "train/report.h"
#include "train/trainer.h"
#include "worker/bad_gradients.h"
#include "worker/job.h"
#include "worker/job_progress.h"
#include "worker/memory_limit.h"

namespace regatta::worker {

class TrainRun : private run::RunObserver {
 public:
  TrainRun(Job& job, TrainData data, train::Reporter& reporter);
  ~TrainRun() override;

  absl::StatusOr<run::RunEnd> Run();

 private:
  void BeginPass(uint64_t epoch) override;
  void AfterStep(const train::PassObserver::Step& step, train::PassMeter& meter) override;
  void EndPass() override;
  void EpochTrained(train::EpochReport report) override;
  absl::Status OnBadLoss(uint64_t epoch, const data::Batch& batch, const absl::Status& status) override;

  absl::Status OpenRoot();
  checkpoint::OpenMode RootMode() const;
  absl::Status Start();
  run::RunOrigin Origin() const;
  run::StopLimits Limits() const;
  run::EpochLoopOptions LoopOptions(const comm::Communicator& communicator) const;
  run::TrainPass MakePass();
  void ReportProfile(const train::EpochReport& report);
  train::IntervalReport Complete(train::IntervalReport report) const;

  Job& job_;
  train::Reporter& reporter_;
  run::Team& team_;
  const MemoryLimit memory_;
  BadGradients bad_gradients_;
  std::unique_ptr<JobProgress> progress_;  // null alone
  JobData data_;
  JobData validation_;                          // the first worker's; no dataset where test_data_dir is not set
  std::unique_ptr<checkpoint::SaveRoot> root_;  // the first worker's; null in the others
  run::Session session_;
  run::StopControl stop_;
  std::unique_ptr<train::Trainer> trainer_;  // from Start on
  std::unique_ptr<run::EpochLoop> loop_;     // from Start on; the last: it uses the others
};

}  // namespace regatta::worker
