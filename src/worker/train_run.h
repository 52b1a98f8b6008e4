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
#include "run/best_epoch.h"
#include "run/rounds.h"
#include "run/run_start.h"
#include "run/session.h"
#include "run/stop_teller.h"
#include "run/team.h"
#include "run/team_checkpoint.h"
#include "run/worker_places.h"
#include "train/pass_meter.h"
#include "train/report.h"
#include "train/trainer.h"
#include "worker/job.h"
#include "worker/job_progress.h"

namespace regatta::worker {

// How a run ended, if it did not fail. All workers of a job end alike.
struct RunEnd {
  enum class Kind : uint8_t {
    kFinished,
    kStopped,  // by a signal, here or at another worker
    kOutOfTime,
    kGivenUp  // another worker did, and its log says why
  };
  Kind kind = Kind::kFinished;
  int signal = 0;  // of kStopped
};

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

  using AfterEpoch = run::ValidatedMessage::After;  // what follows an epoch's validation

  absl::Status OpenRoot();
  checkpoint::OpenMode RootMode() const;
  run::RunOrigin Origin() const;
  absl::Status Start();
  absl::StatusOr<RunEnd> RunEpochs();
  absl::StatusOr<train::PassEnd> RunEpoch();
  absl::StatusOr<RunEnd> StopAlone(const train::PassEnd& end);
  absl::StatusOr<RunEnd> StopTogether(const train::PassEnd& end, const run::EndMessage& all);
  absl::Status SaveStopped(const std::map<int, run::Bytes>& payloads);
  absl::StatusOr<RunEnd> StopUnvalidated();
  run::EndMessage EndHere(const train::PassEnd& end) const;
  absl::Status FinishEpoch(const train::PassEnd& end);
  absl::Status MergeMeters();
  void ReportProfile(const data::Progress& progress, double seconds);
  absl::StatusOr<AfterEpoch> ValidateTogether(const run::Round<run::ValidatedMessage>& round,
                                              std::optional<uint64_t> epoch);
  absl::StatusOr<AfterEpoch> Validate(uint64_t epoch);
  absl::Status SaveAndStop(const train::PassEnd& end, const char* why);
  checkpoint::RunState StateAt(const base::DataPosition& position, checkpoint::EpochState epoch_state) const;
  checkpoint::RunState StateOf(const run::WorkerPlaces& places) const;
  enum class Meter : uint8_t { kWhole, kSmall };
  run::WorkerPlace Here(const base::DataPosition& position, Meter meter) const;
  uint64_t epoch() const { return session_.epoch(); }
  bool CheckpointIsDue();
  bool IsOver() const;
  bool IsOutOfTime() const;
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
  run::Team& team_;
  std::unique_ptr<JobProgress> progress_;            // null alone
  std::unique_ptr<run::TeamCheckpoint> checkpoint_;  // null alone; from Start on
  std::unique_ptr<train::Trainer> trainer_;          // from Start on
  JobData data_;
  JobData validation_;  // the first worker's; no dataset where test_data_dir is not set
  std::unique_ptr<checkpoint::SaveRoot>
      root_;  // the first worker's; null in the others. While checkpoint_ writes, its own

  // Where the run is.
  run::Session session_;
  bool returns_ = false;              // in the place of another process, and no epoch was begun yet
  std::optional<uint64_t> finished_;  // the epoch before the one in which this process takes that place
  std::unique_ptr<train::PassMeter> meter_;
  std::string restored_meter_;
  std::optional<uint64_t> unvalidated_;  // the epoch whose save the run resumes from
  std::optional<run::BestEpoch> best_;   // the first worker's

  // Since when.
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_save_ = start_;
  uint64_t steps_since_save_ = 0;
  uint64_t bad_rows_ = 0, bad_dense_ = 0;  // gradients with NaN or Inf
  absl::Status memory_;
  int validation_signal_ = 0;  // that ended a validation, here or at the first worker; 0 = none
  base::Mutex stop_mu_;
  std::optional<std::chrono::steady_clock::time_point> stop_requested_ ABSL_GUARDED_BY(stop_mu_);  // since when
  std::unique_ptr<run::StopTeller> stop_teller_;  // null alone; the last: it looks at the others
};

}  // namespace regatta::worker
