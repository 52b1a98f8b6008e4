#include "train/plan_queue.h"

namespace regatta::train {

PlanQueue::PlanQueue(data::Dataset& dataset, size_t depth, metrics::Tracer* tracer)
    : dataset_(dataset), depth_(depth), tracer_(tracer) {}

PlanQueue::~PlanQueue() { Stop().IgnoreError(); }

absl::Status PlanQueue::Start(const base::DataPosition& done) {
  RETURN_IF_ERROR(dataset_.BeginPass(done));
  {
    base::MutexLock lock(mu_);
    ready_.clear();
    status_ = absl::OkStatus();
    ended_ = stopping_ = false;
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
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

void PlanQueue::Run() {
  lookup::Planner planner;
  absl::Status status;
  while (auto planned = FreeBatch()) {
    auto batch = dataset_.Next();
    if (!batch.ok() || *batch == nullptr) {
      status = batch.status();
      break;
    }
    metrics::TraceSpan span(tracer_, "plan");
    planned->batch = *std::move(batch);
    const data::Batch& b = *planned->batch;
    planner.Plan({b.keys, b.offsets, b.values}, planned->plan);
    base::MutexLock lock(mu_);
    ready_.push_back(std::move(planned));
    changed_.NotifyAll();
  }
  base::MutexLock lock(mu_);
  ended_ = true;
  status_ = status;
  changed_.NotifyAll();
}

absl::StatusOr<std::unique_ptr<PlannedBatch>> PlanQueue::Next() {
  base::MutexLock lock(mu_);
  while (ready_.empty() && !ended_ && !stopping_) changed_.Wait(mu_);
  if (ready_.empty()) {
    if (!status_.ok()) return status_;
    return std::unique_ptr<PlannedBatch>();
  }
  return TakeLocked();
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

absl::Status PlanQueue::Stop() {
  if (!thread_.joinable()) return absl::OkStatus();
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  absl::Status ended = dataset_.EndPass();
  base::MutexLock lock(mu_);
  return status_.ok() ? ended : status_;
}

}  // namespace regatta::train
