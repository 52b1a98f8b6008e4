#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/elapsed.h"
#include "base/mutex.h"
#include "train/plan_queue.h"

namespace regatta::train {
namespace {

constexpr uint64_t kLeastWindow = 64;  // batches: a position has room for so many without an allocation

// A thread has a batch in work and may hold its next one. As much again lets the others go on while one is slow.
uint64_t WindowOf(int threads) {
  return std::clamp<uint64_t>(4 * static_cast<uint64_t>(threads), kLeastWindow, base::DataPosition::kWindow);
}

}  // namespace

// The state that the threads of one pass share.
class Trainer::Pass {
 public:
  Pass(Trainer& trainer, PlanQueue& queue, base::StepKind kind, const base::DataPosition& done, uint64_t first_step,
       PassObserver& observer)
      : trainer_(trainer),
        queue_(queue),
        kind_(kind),
        first_step_(first_step),
        window_(WindowOf(trainer.options_.threads)),
        observer_(observer),
        position_(done),
        stopping_(observer.StopsHere()) {}

  void RunThread(int thread) {
    StepRunner& runner = *trainer_.runners_[static_cast<size_t>(thread)];
    const auto stop_asked = [this] { return observer_.StopAsked(); };
    std::unique_ptr<PlannedBatch> ahead;
    while (Enter(ahead == nullptr ? Holding::kNothing : Holding::kBatch)) {
      const auto start = std::chrono::steady_clock::now();
      auto planned = ahead == nullptr ? queue_.Next(stop_asked) : std::move(ahead);
      const double read_seconds = base::SecondsSince(start);
      if (!planned.ok() || *planned == nullptr) {
        Leave(planned.status(), Leaving::kLastBatch);
        return;
      }
      absl::Status status = LookAhead(runner, ahead);
      if (status.ok()) status = Step(runner, **planned, read_seconds);
      queue_.Recycle(*std::move(planned));
      Leave(status, Leaving::kOneStep);
    }
    if (ahead == nullptr) return;
    base::MutexLock lock(mu_);
    left_over_ = true;
  }

  absl::StatusOr<PassEnd> End() {
    base::MutexLock lock(mu_);
    if (!status_.ok()) return status_;
    return PassEnd{position_, reached_end_ && !left_over_};
  }

 private:
  enum class Leaving { kOneStep, kLastBatch };
  enum class Holding { kNothing, kBatch };  // kBatch: the thread has taken its next batch already

  // Waits for a pause to be over; false when the pass ends. A thread that holds a batch goes on with it, which is
  // a push of its own: there may be no other in the queue, and others may wait for its place in the window.
  bool Enter(Holding holding) {
    base::MutexLock lock(mu_);
    const bool holds = holding == Holding::kBatch;
    while (pausing_ && !holds && entered_ >= pause_at_ && !stopping_ && !reached_end_ && status_.ok())
      changed_.Wait(mu_);
    if (stopping_ || !status_.ok() || (reached_end_ && !holds)) return false;
    ++in_flight_;
    ++entered_;
    return true;
  }

  // A thread that runs far ahead of a slow one waits: a position holds a limited window of batches.
  void AwaitWindow(uint64_t batch) {
    base::MutexLock lock(mu_);
    while (batch >= position_.low + window_ && status_.ok()) changed_.Wait(mu_);
  }

  // Where the mode fetches ahead, takes the thread's next batch if it is there and starts fetching its rows.
  absl::Status LookAhead(StepRunner& runner, std::unique_ptr<PlannedBatch>& ahead) {
    if (!trainer_.communicator_.traits().prefetches || pausing()) return absl::OkStatus();
    ahead = queue_.TryNext();
    if (ahead == nullptr) return absl::OkStatus();
    return runner.Prefetch(*ahead, kind_, first_step_ + ahead->batch->index);
  }

  absl::Status Step(StepRunner& runner, const PlannedBatch& planned, double read_seconds) {
    const data::Batch& batch = *planned.batch;
    AwaitWindow(batch.index);
    const auto start = std::chrono::steady_clock::now();
    const uint64_t step = first_step_ + batch.index;
    auto result = kind_ == base::StepKind::kTrain ? runner.Train(planned, step) : runner.Infer(planned, step);
    base::MutexLock lock(mu_);
    if (absl::IsDataLoss(result.status())) return observer_.OnBadLoss(batch, result.status());
    if (!result.ok()) return result.status();
    if (!status_.ok()) return status_;
    position_.Add(batch.index);
    switch (observer_.AfterStep({*result, position_, read_seconds, base::SecondsSince(start)})) {
      case PassObserver::StepAction::kGoOn:
        break;
      case PassObserver::StepAction::kPause:
        PauseLocked();
        break;
      case PassObserver::StepAction::kStop:
        stopping_ = true;
        break;
    }
    return absl::OkStatus();
  }

  bool pausing() {
    base::MutexLock lock(mu_);
    return pausing_;
  }

  // The batches of a push are finished first.
  void PauseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (pausing_) return;
    const auto push = static_cast<uint64_t>(trainer_.communicator_.traits().batches_a_push);
    pausing_ = true;
    pause_at_ = (entered_ + push - 1) / push * push;
  }

  void Leave(const absl::Status& status, Leaving leaving) {
    base::MutexLock lock(mu_);
    --in_flight_;
    if (!status.ok() && status_.ok()) {
      status_ = status;
      trainer_.communicator_.Abort(status);
    }
    if (status.ok() && leaving == Leaving::kLastBatch) (queue_.interrupted() ? stopping_ : reached_end_) = true;
    if (pausing_ && in_flight_ == 0 && entered_ >= pause_at_ && !stopping_ && !reached_end_) {
      if (status_.ok()) status_ = trainer_.communicator_.Flush();
      if (status_.ok()) status_ = observer_.AtPause(position_);
      pausing_ = false;
      if (observer_.StopsHere()) stopping_ = true;
    }
    changed_.NotifyAll();
  }

  Trainer& trainer_;
  PlanQueue& queue_;
  const base::StepKind kind_;
  const uint64_t first_step_;
  const uint64_t window_;  // batches
  PassObserver& observer_;

  base::Mutex mu_;
  base::CondVar changed_;
  base::DataPosition position_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t entered_ ABSL_GUARDED_BY(mu_) = 0;  // steps begun
  bool pausing_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t pause_at_ ABSL_GUARDED_BY(mu_) = 0;  // steps begun when the pause is due
  bool stopping_ ABSL_GUARDED_BY(mu_);
  bool reached_end_ ABSL_GUARDED_BY(mu_) = false;
  bool left_over_ ABSL_GUARDED_BY(mu_) = false;  // a batch that a thread held when the pass was stopped
};

Trainer::Trainer(NetMaker nets, comm::Communicator& communicator, const TrainerOptions& options)
    : nets_(std::move(nets)), communicator_(communicator), options_(options) {}

absl::Status Trainer::MakeRunners() {
  for (int t = static_cast<int>(runners_.size()); t < options_.threads; ++t) {
    ASSIGN_OR_RETURN(CheckedNet net, CheckedNet::Make(nets_));
    runners_.push_back(std::make_unique<StepRunner>(
        std::move(net), communicator_,
        StepOptions{.thread = t, .clip_by_norm = options_.clip_by_norm, .tracer = options_.tracer}));
  }
  return absl::OkStatus();
}

absl::StatusOr<PassEnd> Trainer::RunPass(data::Dataset& dataset, base::StepKind kind, const base::DataPosition& done,
                                         uint64_t first_step, PassObserver& observer) {
  RETURN_IF_ERROR(MakeRunners());
  PlanQueue queue(dataset, runners_.front()->layout().slot_sets, 2 + static_cast<size_t>(options_.threads),
                  options_.tracer);
  RETURN_IF_ERROR(communicator_.BeginPass({.learnt = done, .kind = kind, .first_step = first_step}));
  queue.Start(done);
  Pass pass(*this, queue, kind, done, first_step, observer);
  std::vector<std::thread> threads;
  for (int t = 1; t < options_.threads; ++t) threads.emplace_back([&pass, t] { pass.RunThread(t); });
  pass.RunThread(0);
  for (std::thread& thread : threads) thread.join();
  const absl::Status read = queue.Stop();
  ASSIGN_OR_RETURN(PassEnd end, pass.End());
  if (end.complete) RETURN_IF_ERROR(read);
  RETURN_IF_ERROR(communicator_.LeavePass());
  RETURN_IF_ERROR(observer.AtEnd(end));
  RETURN_IF_ERROR(communicator_.EndPass());
  return end;
}

}  // namespace regatta::train
