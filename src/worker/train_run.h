// `regatta train`: epochs over the data, saved, validated and reported, from the first batch or from where an earlier
// run stopped.
// Thread-safety: Run is called once; the observer's methods come from the trainer's threads, one at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/status.h"
#include "checkpoint/save_root.h"
#include "fleet/team.h"
#include "train/pass_meter.h"
#include "train/report.h"
#include "train/trainer.h"
#include "worker/best_epoch.h"
#include "worker/job.h"
#include "worker/job_progress.h"
#include "worker/stop_teller.h"
#include "worker/team_checkpoint.h"
#include "worker/worker_places.h"

namespace regatta::worker {

// How a run ended, where it did not fail.
enum class RunEnd : uint8_t { kFinished, kStoppedBySignal, kStoppedByOthers, kOutOfTime };

class TrainRun : private train::PassObserver {
 public:
  TrainRun(Job& job, TrainData data, train::Reporter& reporter);
  ~TrainRun() override;

  absl::StatusOr<RunEnd> Run();

 private:
  StepAction AfterStep(const Step& step) override;
  absl::Status AtPause(const base::DataPosition& position) override;
  absl::Status AtEnd(const train::PassEnd& end) override;
  absl::Status OnBadLoss(const data::Batch& batch, absl::Status status) override;
  bool StopsHere() override;
  bool StopAsked() override;

  // What follows an epoch's validation; the highest that any worker says holds for all.
  enum class AfterEpoch : uint8_t { kGoOn, kStopEarly, kStopped };

  absl::Status OpenRoot();
  checkpoint::OpenMode RootMode() const;
  absl::Status Start();
  absl::StatusOr<AfterEpoch> ComeBack(uint64_t epochs);
  absl::StatusOr<RunEnd> RunEpochs();
  absl::StatusOr<RunEnd> StopAlone(const train::PassEnd& end);
  absl::StatusOr<RunEnd> StopTogether(const train::PassEnd& end);
  absl::Status SaveStopped(const std::map<int, std::string>& payloads);
  absl::StatusOr<RunEnd> StopUnvalidated();
  absl::Status FinishEpoch(const train::PassEnd& end);
  absl::Status MergeMeters();
  void ReportProfile(const data::Progress& progress, double seconds);
  absl::StatusOr<AfterEpoch> ValidateTogether(const std::string& name, std::optional<uint64_t> epoch);
  absl::StatusOr<AfterEpoch> Validate(uint64_t epoch);
  absl::Status SaveAndStop(const train::PassEnd& end, const char* why);
  checkpoint::RunState StateAt(const base::DataPosition& position, checkpoint::EpochState epoch_state) const;
  checkpoint::RunState StateOf(const WorkerPlaces& places) const;
  enum class Meter : uint8_t { kWhole, kSmall };
  WorkerPlace Here(const base::DataPosition& position, Meter meter) const;
  bool CheckpointIsDue();
  bool IsOver() const;
  bool MustStop();
  bool StopRequested() const;
  bool StopsAtBarrier() const;
  bool StopIsLate();
  absl::Status CheckMemory() const;
  void CountBadGradients(const train::StepResult& result);
  std::string WhatBecomesOfThem() const;
  void SayMemory() const;

  train::IntervalReport Complete(train::IntervalReport report) const;

  Job& job_;
  train::Reporter& reporter_;
  fleet::Team team_;
  std::unique_ptr<JobProgress> progress_;       // null alone
  std::unique_ptr<TeamCheckpoint> checkpoint_;  // null alone; from Start on
  std::unique_ptr<train::Trainer> trainer_;     // from Start on
  JobData data_;
  JobData validation_;  // the first worker's; no dataset where test_data_dir is not set
  std::unique_ptr<checkpoint::SaveRoot>
      root_;  // the first worker's; null in the others. While checkpoint_ writes, its own

  // Where the run is.
  uint64_t epoch_ = 0;
  uint64_t first_step_ = 0;  // of the epoch
  base::DataPosition position_;
  std::optional<uint64_t> began_at_;  // of a worker in the place of one that died: batches of the epoch's save
  std::unique_ptr<train::PassMeter> meter_;
  std::string restored_meter_;
  std::optional<uint64_t> unvalidated_;  // the epoch whose save the run resumes from
  std::optional<BestEpoch> best_;        // the first worker's

  // Since when.
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_save_ = start_;
  uint64_t steps_since_save_ = 0;
  uint64_t bad_rows_ = 0, bad_dense_ = 0;  // gradients with NaN or Inf
  absl::Status memory_;
  base::Mutex stop_mu_;
  std::optional<std::chrono::steady_clock::time_point> stop_requested_ ABSL_GUARDED_BY(stop_mu_);  // since when
  std::unique_ptr<StopTeller> stop_teller_;  // null alone; the last: it looks at the others
};

}  // namespace regatta::worker
