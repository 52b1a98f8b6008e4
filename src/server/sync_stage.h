// Sync on one lane: a step waits here until every worker that is expected has brought its part; then the parts are
// added in the order of ranks and applied as one update.
// Thread-safety: all methods are concurrent.
// Invariants: steps are applied in order, each once and whole. A request is logged under the stage's lock, after it has
// been accepted: the lane's log has requests in the order in which they took effect.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/roster.h"
#include "server/step_image.h"
#include "server/step_part.h"
#include "table/gradient_sum.h"

namespace regatta::server {

// On replay workers that have left are still expected, so steps may be staged that were complete: records of the log
// are not judged by them.
struct StageRequest {
  RequestOrigin origin = RequestOrigin::kWorker;
  // Writes it to the log; the record's index, 0 = there is none.
  std::function<absl::StatusOr<uint64_t>()> log = [] { return 0; };
};

class SyncStage {
 public:
  // What a step's parts come to: samples and gradients of all, `tables` and `dense` as the lane has them, and the
  // learning rates that all of them bring.
  struct Sum {
    uint64_t step = 0;
    uint32_t samples = 0;
    std::vector<base::TableGrads> tables;
    std::span<const float> dense;
    std::optional<float> dense_learning_rate = {};
  };
  using Apply = std::function<absl::Status(const Sum& sum)>;
  // What `sum` is about to change.
  using Capture = std::function<absl::StatusOr<StepImage>(const Sum& sum)>;
  // Without `capture` no step is kept as it was before.
  SyncStage(Roster& roster, Apply apply, Capture capture = nullptr);

  // How far a worker may be ahead of the step that is applied next. It needs one: it pulls a step before it pushes it.
  static constexpr uint64_t kMaxStepsAhead = 8;
  // How far a pass may be behind the one before it: passes are numbered one by one.
  static constexpr uint64_t kMaxPassesAhead = 64;

  // The pass's steps begin at `step`; every worker says the same. FAILED_PRECONDITION names both numbers where another
  // worker has said otherwise. The first pass of a job may begin anywhere; a later one far from the present is
  // OUT_OF_RANGE.
  absl::Status Begin(uint64_t pass, uint64_t step, const StageRequest& request = {});
  // Whether a part that a worker brings can be taken. FAILED_PRECONDITION where the step has been applied, the rank has
  // brought it, or the pass is another; OUT_OF_RANGE where it is too far ahead.
  absl::Status Check(int rank, uint64_t pass, uint64_t step);
  // Hands over a worker's part. Errors as Check, and FAILED_PRECONDITION if another worker has brought another learning
  // rate for the step; then nothing is logged. A log that cannot be written ends the job:
  // no step is completed any more, and every waiting call returns that error.
  absl::Status Add(int rank, StepPart part, const StageRequest& request = {});
  // The rank brings no more steps of this pass.
  absl::Status LeavePass(int rank, uint64_t pass, const StageRequest& request = {});
  // Before rows are replaced. FAILED_PRECONDITION where a worker's request finds a step that waits for parts. Where a
  // record does, that step was complete then, and is applied.
  absl::Status Empty(RequestOrigin origin);
  // Waits until all steps before `step` are applied; the job's failure ends the wait, and an error of `asker`, who may
  // have gone meanwhile.
  absl::Status AwaitBefore(
      uint64_t step, const std::function<absl::Status()>& asker = [] { return absl::OkStatus(); });
  // For a pull of `step` that AwaitBefore let through and whose rows have been read: what the step changed, where it
  // has been applied. Null where it has not, and the rows are as the step must see them. FAILED_PRECONDITION where
  // later steps were applied, too.
  absl::StatusOr<std::shared_ptr<const StepImage>> BeforeOf(uint64_t step);
  // What a checkpoint holds of it, while nothing is added: steps before `next` are applied, the others are in the log.
  struct State {
    uint64_t next = 0;
    std::vector<int64_t> left_pass;  // of each rank; -1 = none
    uint64_t oldest = 0;             // the first record of a part that is not applied; 0 = there is none
    std::shared_ptr<const StepImage> before = nullptr;        // of step next - 1; null where it is not kept
    std::optional<std::pair<uint64_t, uint64_t>> begun = {};  // the last pass that began, and its step
  };
  State state();
  void Restore(const State& state);
  // Somebody left the job: steps may have become complete.
  void CompleteSteps();
  // Whether a step was applied that the rank, which was done, did not bring. It cannot come back to the job then: a
  // replay would wait for its part.
  bool WentOnWithout(int rank);

 private:
  struct Step {
    uint64_t pass = 0;
    std::map<int, StepPart> parts;  // by rank
  };
  absl::Status CheckLocked(int rank, uint64_t pass, uint64_t step, RequestOrigin origin) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckAheadLocked(int rank, uint64_t step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckRatesLocked(int rank, const StepPart& part) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckBeginLocked(uint64_t pass, uint64_t step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<uint64_t> LogLocked(const StageRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyNextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyBeforeLocked(uint64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyCompleteLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ApplyLocked(const Step& step, uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddDenseLocked(std::span<const StepPart* const> parts, Sum& sum) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CompleteLocked(const Step& step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteMissedLocked(const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string MissingLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Roster& roster_;
  const Apply apply_;
  const Capture capture_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<uint64_t, Step> staged_ ABSL_GUARDED_BY(mu_);
  std::vector<int64_t> left_pass_ ABSL_GUARDED_BY(mu_);  // the last pass that a rank has left; -1 = none
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 0;               // steps before it are applied
  std::optional<std::pair<uint64_t, uint64_t>> begun_ ABSL_GUARDED_BY(mu_);  // the last pass that began, and its step
  std::shared_ptr<const StepImage> before_ ABSL_GUARDED_BY(mu_);             // of the last step that was applied
  std::vector<bool> missed_ ABSL_GUARDED_BY(mu_);                            // by rank: WentOnWithout
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::vector<table::GradientSum> table_sums_ ABSL_GUARDED_BY(mu_);
  std::vector<float> dense_sum_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::server
