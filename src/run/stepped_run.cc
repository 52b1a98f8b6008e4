#include "run/stepped_run.h"

#include <array>
#include <utility>

#include "train/step_runner.h"

namespace regatta::run {
namespace {

constexpr char kLabel[] = "label";

train::NetSpec SpecOf(train::Metric metric) {
  train::NetSpec spec;
  spec.schema.labels = {kLabel};
  spec.outputs = {{.name = "prediction", .metric = metric, .label = kLabel}};
  return spec;
}

}  // namespace

EpochLoopParts SteppedRun::PartsOf(const SteppedRunParts& parts) {
  return {.session = parts.session,
          .stop = parts.stop,
          .train_pass = [this](const base::DataPosition& done, uint64_t first_step,
                               train::PassObserver& observer) { return HandOver(done, first_step, observer); },
          .spec = spec_,
          .root = parts.root,
          .model = parts.model,
          .reporter = parts.reporter,
          .observer = *this,
          .add_state = parts.add_state};
}

SteppedRun::SteppedRun(const SteppedRunParts& parts, train::Metric metric, const EpochLoopOptions& options,
                       const RunStart& start)
    : communicator_(parts.communicator),
      root_(parts.root),
      spec_(SpecOf(metric)),
      loop_(PartsOf(parts), options, start) {}

SteppedRun::~SteppedRun() { Fail(absl::CancelledError("the run was given up")); }

// In the loop's thread.
absl::StatusOr<train::PassEnd> SteppedRun::HandOver(const base::DataPosition& done, uint64_t first_step,
                                                    train::PassObserver& observer) {
  RETURN_IF_ERROR(communicator_.BeginPass({.learnt = done, .kind = base::StepKind::kTrain, .first_step = first_step}));
  base::MutexLock lock(mu_);
  observer_ = &observer;
  pass_ = {.epoch = done.pass, .first_step = first_step, .position = done, .stopped = observer.StopsHere()};
  steps_ = 0;
  pausing_ = false;
  turn_ = Turn::kProgram;
  changed_.NotifyAll();
  while (turn_ == Turn::kProgram) changed_.Wait(mu_);
  observer_ = nullptr;
  return pass_end_;
}

// Waits until the program is to go on; the error of a run that has failed.
absl::Status SteppedRun::AwaitTurn() {
  {
    base::MutexLock lock(mu_);
    while (turn_ == Turn::kLoop) changed_.Wait(mu_);
    if (turn_ == Turn::kProgram) return absl::OkStatus();
    if (!ended_.has_value()) ended_ = loop_end_;
  }
  if (thread_.joinable()) thread_.join();
  return ended_->status();
}

absl::Status SteppedRun::GiveBack(absl::StatusOr<train::PassEnd> end) {
  {
    base::MutexLock lock(mu_);
    pass_end_ = std::move(end);
    turn_ = Turn::kLoop;
    changed_.NotifyAll();
  }
  return AwaitTurn();
}

absl::StatusOr<std::optional<SteppedRun::Pass>> SteppedRun::NextPass() {
  if (ended()) {
    RETURN_IF_ERROR(ended_->status());
    return std::nullopt;
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] {
      absl::StatusOr<RunEnd> end = loop_.Run();
      base::MutexLock lock(mu_);
      loop_end_ = std::move(end);
      turn_ = Turn::kEnded;
      changed_.NotifyAll();
    });
  }
  RETURN_IF_ERROR(AwaitTurn());
  if (ended()) return std::nullopt;
  return pass_;
}

absl::StatusOr<bool> SteppedRun::AfterStep(const StepCounts& counts) {
  if (observer_ == nullptr) return absl::FailedPreconditionError("no pass is under way");
  if (counts.predictions.size() != counts.labels.size() ||
      (!counts.labels.empty() && counts.labels.size() != counts.samples))
    return absl::InvalidArgumentError(absl::StrCat(counts.predictions.size(), " predictions and ", counts.labels.size(),
                                                   " labels of ", counts.samples, " samples"));
  const uint64_t index = pass_.position.low;
  batch_.pass = pass_.epoch;
  batch_.index = index;
  batch_.size = static_cast<int>(counts.samples);
  batch_.label_dim = counts.labels.empty() ? 0 : 1;
  batch_.labels.assign(counts.labels.begin(), counts.labels.end());
  const std::array predictions{
      base::TensorView::Vector(counts.predictions.data(), static_cast<int64_t>(counts.predictions.size()))};
  const train::StepResult result{.batch = &batch_,
                                 .predictions = predictions,
                                 .loss_sum = counts.loss * static_cast<double>(counts.samples),
                                 .weight_sum = static_cast<double>(counts.samples)};
  pass_.position.Add(index);
  ++steps_;
  using Action = train::PassObserver::StepAction;
  const Action action = observer_->AfterStep({result, pass_.position, counts.read_seconds, counts.step_seconds});
  if (action == Action::kStop) pass_.stopped = true;
  if (action == Action::kPause) pausing_ = true;
  const auto push = static_cast<uint64_t>(communicator_.traits().batches_a_push);
  if (pausing_ && !pass_.stopped && steps_ % push == 0) {
    pausing_ = false;
    RETURN_IF_ERROR(communicator_.Flush());
    RETURN_IF_ERROR(observer_->AtPause(pass_.position));
    pass_.stopped = observer_->StopsHere();
  }
  return !pass_.stopped;
}

absl::Status SteppedRun::LeavePass(const train::PassEnd& end) {
  RETURN_IF_ERROR(communicator_.LeavePass());
  RETURN_IF_ERROR(observer_->AtEnd(end));
  return communicator_.EndPass();
}

absl::Status SteppedRun::EndPass(bool complete) {
  if (observer_ == nullptr) return absl::FailedPreconditionError("no pass is under way");
  const train::PassEnd end{pass_.position, complete && !pass_.stopped};
  if (const absl::Status left = LeavePass(end); !left.ok()) {
    GiveBack(left).IgnoreError();  // gives the same, or what it led to
    return left;
  }
  return GiveBack(end);
}

absl::Status SteppedRun::Finish() {
  if (ended()) return ended_->status();
  if (observer_ != nullptr && steps_ > 0)
    return absl::FailedPreconditionError("the epoch is not over: a run ends between two epochs");
  Fail(absl::CancelledError("no more epochs are wanted"));
  return root_ == nullptr ? absl::OkStatus() : root_->MarkFinished();
}

void SteppedRun::Fail(const absl::Status& why) {
  if (ended() || !thread_.joinable()) return;
  // The loop waits for the program: NextPass, EndPass and AfterStep have given it back or ended the run.
  GiveBack(why).IgnoreError();
}

train::IntervalReport SteppedRun::Interval() const {
  return meter_ == nullptr ? train::IntervalReport{} : meter_->Interval();
}

}  // namespace regatta::run
