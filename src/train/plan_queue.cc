#include "train/plan_queue.h"

#include <chrono>
#include <utility>

#include "lookup/bag_selection.h"

namespace regatta::train {
namespace {

constexpr std::chrono::milliseconds kStopPoll(50);  // how soon a stop is seen by those who wait for data

}  // namespace

PlanQueue::PlanQueue(data::Dataset& dataset, std::vector<std::vector<int>> slot_sets, size_t depth,
                     metrics::Tracer* tracer)
    : dataset_(dataset), slot_sets_(std::move(slot_sets)), depth_(depth), tracer_(tracer) {}

PlanQueue::~PlanQueue() { Stop().IgnoreError(); }

void PlanQueue::Start(const base::DataPosition& done) {
  {
    base::MutexLock lock(mu_);
    ready_.clear();
    status_ = absl::OkStatus();
    ended_ = stopping_ = interrupted_ = false;
  }
  thread_ = std::thread([this, done] { Run(done); });
}

std::unique_ptr<PlannedBatch> PlanQueue::FreeBatch() {
  base::MutexLock lock(mu_);
  while (ready_.size() >= depth_ && !stopping_) changed_.Wait(mu_);
  if (stopping_) return nullptr;
  if (free_.empty()) return std::make_unique<PlannedBatch>();
  auto batch = std::move(free_.back());
  free_.pop_back();
  return batch;
}

void PlanQueue::Run(const base::DataPosition& done) {
  const absl::Status status = Read(done);
  base::MutexLock lock(mu_);
  ended_ = true;
  status_ = status;
  changed_.NotifyAll();
}

absl::Status PlanQueue::Read(const base::DataPosition& done) {
  lookup::Planner planner;
  lookup::BagSelection selection;
  RETURN_IF_ERROR(dataset_.BeginPass(done));
  while (auto planned = FreeBatch()) {
    ASSIGN_OR_RETURN(planned->batch, dataset_.Next());
    if (planned->batch == nullptr) break;
    metrics::TraceSpan span(tracer_, "plan");
    const data::Batch& b = *planned->batch;
    planned->plans.resize(slot_sets_.size());
    for (size_t i = 0; i < slot_sets_.size(); ++i)
      planner.Plan(selection.Select({b.keys, b.offsets, b.values}, b.slots, slot_sets_[i]), planned->plans[i]);
    base::MutexLock lock(mu_);
    ready_.push_back(std::move(planned));
    changed_.NotifyAll();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PlannedBatch>> PlanQueue::Next(const std::function<bool()>& stop_asked) {
  base::MutexLock lock(mu_);
  while (ready_.empty() && !ended_ && !stopping_) {
    if (changed_.WaitFor(mu_, kStopPoll) || !ready_.empty() || ended_ || !stop_asked()) continue;
    interrupted_ = stopping_ = true;
    changed_.NotifyAll();
  }
  if (ready_.empty()) {
    if (!status_.ok() && !interrupted_) return status_;
    return std::unique_ptr<PlannedBatch>();
  }
  return TakeLocked();
}

bool PlanQueue::interrupted() const {
  base::MutexLock lock(mu_);
  return interrupted_;
}

std::unique_ptr<PlannedBatch> PlanQueue::TryNext() {
  base::MutexLock lock(mu_);
  return ready_.empty() ? nullptr : TakeLocked();
}

std::unique_ptr<PlannedBatch> PlanQueue::TakeLocked() {
  auto batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.NotifyAll();
  return batch;
}

void PlanQueue::Recycle(std::unique_ptr<PlannedBatch> batch) {
  if (batch->batch != nullptr) dataset_.Recycle(std::move(batch->batch));
  base::MutexLock lock(mu_);
  free_.push_back(std::move(batch));
}

// Again and again, for the thread may be about to begin the pass.
void PlanQueue::InterruptReading() {
  base::MutexLock lock(mu_);
  while (!ended_) {
    dataset_.Interrupt();
    changed_.WaitFor(mu_, kStopPoll);
  }
}

absl::Status PlanQueue::Stop() {
  if (!thread_.joinable()) return absl::OkStatus();
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  InterruptReading();
  thread_.join();
  absl::Status ended = dataset_.EndPass();
  base::MutexLock lock(mu_);
  return status_.ok() ? ended : status_;
}

}  // namespace regatta::train
