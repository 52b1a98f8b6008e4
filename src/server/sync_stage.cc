#include "server/sync_stage.h"

#include <glog/logging.h>

#include <chrono>

#include "base/failpoint.h"

namespace regatta::server {
namespace {

constexpr std::chrono::seconds kSayAfter(10);

}  // namespace

SyncStage::SyncStage(Roster& roster, Apply apply, Capture capture)
    : roster_(roster),
      apply_(std::move(apply)),
      capture_(std::move(capture)),
      left_pass_(static_cast<size_t>(roster.workers()), -1) {}

absl::Status SyncStage::Begin(uint64_t pass, uint64_t step) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  if (step <= next_) return absl::OkStatus();
  if (!staged_.empty())
    return absl::FailedPreconditionError(absl::StrCat("pass ", pass, " cannot begin at step ", step, ": step ",
                                                      staged_.begin()->first, " of pass ", staged_.begin()->second.pass,
                                                      " is not complete"));
  next_ = step;
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::Status SyncStage::Add(int rank, StepPart part) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  if (part.step < next_)
    return absl::FailedPreconditionError(
        absl::StrCat("step ", part.step, " of worker ", rank, " comes after step ", next_ - 1, " was applied"));
  Step& step = staged_[part.step];
  if (step.parts.empty()) step.pass = part.pass;
  if (step.pass != part.pass)
    return absl::FailedPreconditionError(absl::StrCat("step ", part.step, " is of pass ", part.pass, " to worker ",
                                                      rank, " and of pass ", step.pass, " to the others"));
  if (!step.parts.try_emplace(rank, std::move(part)).second)
    return absl::FailedPreconditionError(absl::StrCat("worker ", rank, " brings a step twice"));
  ApplyCompleteLocked();
  return failure_;
}

void SyncStage::Fail(const absl::Status& why) {
  base::MutexLock lock(mu_);
  if (failure_.ok()) failure_ = why;
  changed_.NotifyAll();
}

absl::Status SyncStage::LeavePass(int rank, uint64_t pass) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  int64_t& left = left_pass_[static_cast<size_t>(rank)];
  left = std::max(left, static_cast<int64_t>(pass));
  ApplyCompleteLocked();
  return failure_;
}

absl::Status SyncStage::AwaitBefore(uint64_t step, const std::function<absl::Status()>& asker) {
  base::MutexLock lock(mu_);
  auto said = std::chrono::steady_clock::now();
  while (next_ < step) {
    RETURN_IF_ERROR(failure_);
    RETURN_IF_ERROR(roster_.failure());
    RETURN_IF_ERROR(asker());
    changed_.WaitFor(mu_, std::chrono::seconds(1));
    const auto now = std::chrono::steady_clock::now();
    if (next_ >= step || now - said < kSayAfter) continue;
    said = now;
    LOG(WARNING) << "step " << next_ << ": waiting for " << MissingLocked();
  }
  return failure_;
}

absl::StatusOr<std::shared_ptr<const StepImage>> SyncStage::BeforeOf(uint64_t step) {
  base::MutexLock lock(mu_);
  if (capture_ == nullptr || step >= next_) return nullptr;
  if (before_ != nullptr && before_->step == step) return before_;
  return absl::FailedPreconditionError(
      absl::StrCat("the rows before step ", step, " are not here any more: step ", next_ - 1, " has been applied"));
}

SyncStage::State SyncStage::state() {
  base::MutexLock lock(mu_);
  State state{next_, left_pass_, 0, before_};
  for (const auto& [number, step] : staged_)
    for (const auto& [rank, part] : step.parts)
      if (part.logged != 0 && (state.oldest == 0 || part.logged < state.oldest)) state.oldest = part.logged;
  return state;
}

void SyncStage::Restore(const State& state) {
  base::MutexLock lock(mu_);
  next_ = state.next;
  before_ = state.before;
  for (size_t rank = 0; rank < left_pass_.size() && rank < state.left_pass.size(); ++rank)
    left_pass_[rank] = state.left_pass[rank];
}

void SyncStage::Look() {
  base::MutexLock lock(mu_);
  ApplyCompleteLocked();
  changed_.NotifyAll();
}

bool SyncStage::CompleteLocked(const Step& step) const {
  for (int rank = 0; rank < roster_.workers(); ++rank) {
    if (step.parts.contains(rank)) continue;
    if (left_pass_[static_cast<size_t>(rank)] >= static_cast<int64_t>(step.pass)) continue;
    if (roster_.Expected(rank)) return false;
  }
  return true;
}

void SyncStage::ApplyCompleteLocked() {
  bool applied = false;
  while (failure_.ok()) {
    const auto it = staged_.find(next_);
    if (it == staged_.end() || !CompleteLocked(it->second)) break;
    failure_ = base::Failpoint("step.complete");
    if (failure_.ok()) failure_ = ApplyLocked(it->second, next_);
    staged_.erase(it);
    ++next_;
    applied = true;
  }
  if (applied) changed_.NotifyAll();
}

// In the order of ranks: for a fixed number of workers the bits are the same whatever the number of servers.
absl::Status SyncStage::ApplyLocked(const Step& step, uint64_t number) {
  std::vector<const StepPart*> parts;
  for (const auto& [rank, part] : step.parts) parts.push_back(&part);
  const StepPart& first = *parts.front();
  Sum sum;
  sum.step = number;
  for (const StepPart* part : parts) sum.samples += part->samples;
  table_sums_.resize(first.tables.size());
  for (size_t t = 0; t < first.tables.size(); ++t) {
    std::vector<base::TableGrads> pushes;
    for (const StepPart* part : parts) pushes.push_back(part->tables[t].View());
    sum.tables.push_back(pushes.size() == 1 ? pushes.front() : table_sums_[t].Sum(pushes));
  }
  sum.dense = first.dense;
  if (parts.size() > 1 && !first.dense.empty()) {
    dense_sum_ = first.dense;
    for (size_t p = 1; p < parts.size(); ++p)
      for (size_t i = 0; i < dense_sum_.size(); ++i) dense_sum_[i] += parts[p]->dense[i];
    sum.dense = dense_sum_;
  }
  if (capture_ != nullptr) {
    ASSIGN_OR_RETURN(StepImage image, capture_(sum));
    before_ = std::make_shared<const StepImage>(std::move(image));
  }
  return apply_(sum);
}

std::string SyncStage::MissingLocked() const {
  const auto it = staged_.find(next_);
  std::string missing;
  for (int rank = 0; rank < roster_.workers(); ++rank) {
    if (it != staged_.end() && it->second.parts.contains(rank)) continue;
    if (roster_.Expected(rank)) absl::StrAppend(&missing, missing.empty() ? "" : ", ", roster_.Describe(rank));
  }
  return missing;
}

}  // namespace regatta::server
