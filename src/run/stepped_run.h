// A run whose steps the program makes itself, because it owns its loop over batches, as programs in Python do. The
// epochs, their saves, checkpoints, stops and coming back are EpochLoop's. It runs in a thread of its own: where it
// trains a pass it hands over to the program, and waits until the program has ended the pass.
//   while (pass = run.NextPass()) {         // which epoch, and where it begins
//     while (goes on) { make and commit a step; goes on = run.AfterStep(counts); }
//     run.EndPass(complete or stopped);
//   }
//   run.end();                              // how it ended
// Thread-safety: belongs to one thread. It and the loop's take turns: only one of them is at work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/step.h"
#include "checkpoint/model_store.h"
#include "checkpoint/save_root.h"
#include "comm/communicator.h"
#include "data/batch.h"
#include "run/epoch_loop.h"
#include "run/run_end.h"
#include "run/run_observer.h"
#include "run/run_start.h"
#include "run/session.h"
#include "run/stop_control.h"
#include "train/net_spec.h"
#include "train/pass_meter.h"
#include "train/report.h"

namespace regatta::run {

// All are borrowed. `root` is the first worker's, and null where nothing is saved.
struct SteppedRunParts {
  Session& session;  // begun
  StopControl& stop;
  comm::Communicator& communicator;
  checkpoint::SaveRoot* root = nullptr;
  checkpoint::ModelStore& model;
  train::Reporter& reporter;
  AddState add_state = nullptr;
};

// What the program says of a step. Without labels it is counted, not measured.
struct StepCounts {
  uint64_t samples = 0;
  double loss = 0;                          // the mean over the samples
  std::span<const float> predictions = {};  // a sample each, or none
  std::span<const float> labels = {};       // the same
  double read_seconds = 0;                  // waited for the batch
  double step_seconds = 0;
};

class SteppedRun : private RunObserver {
 public:
  struct Pass {
    uint64_t epoch = 0;
    uint64_t first_step = 0;  // of the epoch
    base::DataPosition position;
    bool stopped = false;  // no step is to be made: the pass ends here
  };

  // The one output that is measured is `metric`.
  SteppedRun(const SteppedRunParts& parts, train::Metric metric, const EpochLoopOptions& options,
             const RunStart& start);
  // Gives up a run that has not ended.
  ~SteppedRun() override;
  SteppedRun(const SteppedRun&) = delete;
  SteppedRun& operator=(const SteppedRun&) = delete;

  // The next pass to train, which the communicator has begun; nothing: the run has ended. The first call begins it.
  absl::StatusOr<std::optional<Pass>> NextPass();
  // The pass's next step is committed. Whether the pass goes on: a checkpoint may have been taken, or the run is to
  // stop.
  absl::StatusOr<bool> AfterStep(const StepCounts& counts);
  // No more steps in this pass; `complete`: not because AfterStep or NextPass said that it stops. Waits for what comes
  // before the next pass: the end of the others' passes, the save.
  absl::Status EndPass(bool complete);

  // Between two passes: the run ends here as if it had had no more epochs.
  absl::Status Finish();
  // Something else has failed: the run ends, and may be resumed from its last save.
  void Fail(const absl::Status& why);

  bool ended() const { return ended_.has_value(); }
  // Of a run that has ended well.
  const RunEnd& end() const { return **ended_; }
  // Of the pass so far, and of all epochs that were trained here.
  train::IntervalReport Interval() const;
  const std::vector<train::EpochReport>& reports() const { return reports_; }

 private:
  enum class Turn : uint8_t { kLoop, kProgram, kEnded };

  absl::StatusOr<train::PassEnd> HandOver(const base::DataPosition& done, uint64_t first_step,
                                          train::PassObserver& observer);
  absl::Status GiveBack(absl::StatusOr<train::PassEnd> end);
  absl::Status AwaitTurn();
  absl::Status LeavePass(const train::PassEnd& end);
  EpochLoopParts PartsOf(const SteppedRunParts& parts);

  void BeginPass(uint64_t) override {}
  void AfterStep(const train::PassObserver::Step&, train::PassMeter& meter) override { meter_ = &meter; }
  void EndPass() override { meter_ = nullptr; }
  void EpochTrained(train::EpochReport report) override { reports_.push_back(std::move(report)); }
  absl::Status OnBadLoss(uint64_t, const data::Batch&, const absl::Status& status) override { return status; }

  comm::Communicator& communicator_;
  checkpoint::SaveRoot* const root_;
  const train::NetSpec spec_;
  data::Batch batch_;  // of a step, as meters want it
  const train::PassMeter* meter_ = nullptr;
  std::vector<train::EpochReport> reports_;

  // Of the pass that the program has.
  train::PassObserver* observer_ = nullptr;
  Pass pass_;
  uint64_t steps_ = 0;
  bool pausing_ = false;  // as soon as no push is under way

  base::Mutex mu_;
  base::CondVar changed_;
  Turn turn_ ABSL_GUARDED_BY(mu_) = Turn::kLoop;
  absl::StatusOr<train::PassEnd> pass_end_ ABSL_GUARDED_BY(mu_);

  std::optional<absl::StatusOr<RunEnd>> ended_;  // once the loop's thread is gone
  EpochLoop loop_;
  absl::StatusOr<RunEnd> loop_end_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // the last: it uses the others
};

}  // namespace regatta::run
