#include "comm/batch_group.h"

namespace regatta::comm {

BatchGroup::BatchGroup(int size, int64_t dense_size, Send send)
    : size_(static_cast<uint64_t>(size)), dense_size_(dense_size), send_(std::move(send)) {}

void BatchGroup::Begin(const base::PassKeys& pass) {
  base::MutexLock lock(mu_);
  pass_ = pass.learnt.pass;
  first_step_ = pass.first_step + pass.learnt.low;
  sent_ = 0;
  failure_ = absl::OkStatus();
  parts_.clear();
}

uint64_t BatchGroup::GroupOf(uint64_t step) const { return (step - first_step_) / size_; }

absl::Status BatchGroup::Await(uint64_t group) {
  base::MutexLock lock(mu_);
  while (sent_ < group && failure_.ok()) changed_.Wait(mu_);
  return failure_;
}

absl::Status BatchGroup::Add(const base::StepGrads& grads) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  if (size_ == 1) {  // nothing to add up: the step goes as it is
    base::StepGrads step = grads;
    step.step = sent_;
    failure_ = send_(step);
    ++sent_;
    changed_.NotifyAll();
    return failure_;
  }
  if (spare_.empty()) spare_.push_back(std::make_unique<StepCopy>());
  std::unique_ptr<StepCopy> copy = std::move(spare_.back());
  spare_.pop_back();
  copy->Assign(grads, dense_size_);
  parts_[grads.step] = std::move(copy);
  return parts_.size() == size_ ? SendLocked() : absl::OkStatus();
}

void BatchGroup::Abort(const absl::Status& status) {
  base::MutexLock lock(mu_);
  if (failure_.ok()) failure_ = status;
  changed_.NotifyAll();
}

absl::StatusOr<uint64_t> BatchGroup::End() {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  if (!parts_.empty()) RETURN_IF_ERROR(SendLocked());
  return sent_;
}

absl::Status BatchGroup::SendLocked() {
  base::StepGrads sum;
  sum.step = sent_;
  sum.pass = pass_;
  const StepCopy& first = *parts_.begin()->second;
  sums_.resize(first.tables().size());
  std::vector<base::TableGrads> tables;
  for (size_t t = 0; t < first.tables().size(); ++t) {
    std::vector<base::TableGrads> pushes;
    for (const auto& [step, part] : parts_) pushes.push_back(part->tables()[t]);
    tables.push_back(sums_[t].Sum(pushes));
  }
  sum.batch = first.batch();
  batches_.clear();
  for (const auto& [step, part] : parts_) batches_.push_back(part->batch());
  sum.batches = batches_;
  dense_ = first.dense();
  for (const auto& [step, part] : parts_) {
    sum.samples += part->samples();
    if (part.get() == &first) continue;
    for (size_t i = 0; i < dense_.size(); ++i) dense_[i] += part->dense()[i];
  }
  const base::DenseGrad piece{0, dense_};
  sum.tables = tables;
  if (!dense_.empty()) sum.dense = {&piece, 1};
  failure_ = send_(sum);
  for (auto& [step, part] : parts_) spare_.push_back(std::move(part));
  parts_.clear();
  ++sent_;
  changed_.NotifyAll();
  return failure_;
}

}  // namespace regatta::comm
