#include "server/sync_stage.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/failpoint.h"
#include "base/learning_rate.h"

namespace regatta::server {
namespace {

constexpr std::chrono::seconds kSayMissingAfter(10);

// The rate of a part that names the table; the others bring no gradient of it.
std::optional<float> RateOf(std::span<const StepPart* const> parts, size_t table) {
  for (const StepPart* part : parts)
    if (part->tables[table].named) return part->tables[table].learning_rate;
  return std::nullopt;
}

}  // namespace

SyncStage::SyncStage(Roster& roster, Apply apply, Capture capture)
    : roster_(roster),
      apply_(std::move(apply)),
      capture_(std::move(capture)),
      left_pass_(static_cast<size_t>(roster.workers()), -1),
      missed_(static_cast<size_t>(roster.workers()), false) {}

absl::StatusOr<uint64_t> SyncStage::LogLocked(const StageRequest& request) {
  absl::StatusOr<uint64_t> index = request.log();
  if (!index.ok()) {
    failure_ = index.status();
    changed_.NotifyAll();
  }
  return index;
}

absl::Status SyncStage::CheckBeginLocked(uint64_t pass, uint64_t step) const {
  if (begun_.has_value() && begun_->first == pass && begun_->second != step)
    return absl::FailedPreconditionError(absl::StrCat("pass ", pass, " cannot begin at step ", step,
                                                      ": for another worker it begins at step ", begun_->second));
  if (begun_.has_value() && pass < begun_->first)
    return absl::FailedPreconditionError(
        absl::StrCat("pass ", pass, " cannot begin: pass ", begun_->first, " has begun"));
  if (begun_.has_value() && (pass - begun_->first > kMaxPassesAhead || step > next_ + kMaxStepsAhead))
    return absl::OutOfRangeError(absl::StrCat("pass ", pass, " cannot begin at step ", step, ": pass ", begun_->first,
                                              " is the last that has begun, and step ", next_, " is next"));
  if (step > next_ && !staged_.empty())
    return absl::FailedPreconditionError(absl::StrCat("pass ", pass, " cannot begin at step ", step, ": step ",
                                                      staged_.begin()->first, " of pass ", staged_.begin()->second.pass,
                                                      " is not complete"));
  return absl::OkStatus();
}

absl::Status SyncStage::Begin(uint64_t pass, uint64_t step, const StageRequest& request) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  if (request.origin == RequestOrigin::kWorker) RETURN_IF_ERROR(CheckBeginLocked(pass, step));
  RETURN_IF_ERROR(LogLocked(request).status());
  begun_ = {pass, step};
  ApplyBeforeLocked(step);
  next_ = std::max(next_, step);
  changed_.NotifyAll();
  return failure_;
}

absl::Status SyncStage::Check(int rank, uint64_t pass, uint64_t step) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckLocked(rank, pass, step, RequestOrigin::kWorker));
  return CheckAheadLocked(rank, step);
}

absl::Status SyncStage::CheckAheadLocked(int rank, uint64_t step) const {
  if (step - next_ <= kMaxStepsAhead) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("step ", step, " of worker ", rank, " is too far ahead: step ", next_,
                                            " is next, and ", kMaxStepsAhead, " more may wait"));
}

// A record may be older than the pass that a checkpoint knows as begun.
absl::Status SyncStage::CheckLocked(int rank, uint64_t pass, uint64_t step, RequestOrigin origin) const {
  RETURN_IF_ERROR(failure_);
  if (step < next_)
    return absl::FailedPreconditionError(
        absl::StrCat("step ", step, " of worker ", rank, " comes after step ", next_ - 1, " was applied"));
  const auto staged = staged_.find(step);
  const bool known = staged != staged_.end() || (begun_.has_value() && origin == RequestOrigin::kWorker);
  const uint64_t wanted = staged != staged_.end() ? staged->second.pass : begun_.value_or(std::pair(pass, step)).first;
  if (known && wanted != pass)
    return absl::FailedPreconditionError(absl::StrCat("step ", step, " is of pass ", pass, " to worker ", rank,
                                                      " and of pass ", wanted, " to the others"));
  if (staged != staged_.end() && staged->second.parts.contains(rank))
    return absl::FailedPreconditionError(absl::StrCat("worker ", rank, " brings step ", step, " twice"));
  return absl::OkStatus();
}

absl::Status SyncStage::Add(int rank, StepPart part, const StageRequest& request) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckLocked(rank, part.pass, part.step, request.origin));
  if (request.origin == RequestOrigin::kWorker) {
    RETURN_IF_ERROR(CheckAheadLocked(rank, part.step));
    RETURN_IF_ERROR(CheckRatesLocked(rank, part));
  }
  ASSIGN_OR_RETURN(const uint64_t logged, LogLocked(request));
  if (part.logged == 0) part.logged = logged;
  Step& step = staged_[part.step];
  step.pass = part.pass;
  step.parts.emplace(rank, std::move(part));
  ApplyCompleteLocked();
  return failure_;
}

// A step is one update: it has one rate for a table. Every lane has all sections of a push, so all lanes say the same.
absl::Status SyncStage::CheckRatesLocked(int rank, const StepPart& part) const {
  const auto staged = staged_.find(part.step);
  if (staged == staged_.end()) return absl::OkStatus();
  const auto differ = [&](int other, const std::string& what, std::optional<float> mine, std::optional<float> theirs) {
    return absl::FailedPreconditionError(absl::StrCat("step ", part.step, ", ", what, ": worker ", rank, " brings ",
                                                      base::DescribeLearningRate(mine), ", and worker ", other,
                                                      " brings ", base::DescribeLearningRate(theirs),
                                                      "; in sync all workers bring the same for a step"));
  };
  for (const auto& [other, theirs] : staged->second.parts) {
    for (size_t t = 0; t < std::min(part.tables.size(), theirs.tables.size()); ++t) {
      const TablePart &a = part.tables[t], &b = theirs.tables[t];
      if (a.named && b.named && a.learning_rate != b.learning_rate)
        return differ(other, absl::StrCat("table ", a.table), a.learning_rate, b.learning_rate);
    }
    if (!part.dense.empty() && !theirs.dense.empty() && part.dense_learning_rate != theirs.dense_learning_rate)
      return differ(other, "dense parameters", part.dense_learning_rate, theirs.dense_learning_rate);
  }
  return absl::OkStatus();
}

absl::Status SyncStage::LeavePass(int rank, uint64_t pass, const StageRequest& request) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  if (request.origin == RequestOrigin::kWorker && (!begun_.has_value() || pass > begun_->first))
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", rank, " leaves pass ", pass, ", and ",
                     begun_.has_value() ? absl::StrCat("pass ", begun_->first, " is the last that has begun")
                                        : "no pass has begun"));
  RETURN_IF_ERROR(LogLocked(request).status());
  int64_t& left = left_pass_[static_cast<size_t>(rank)];
  left = std::max(left, static_cast<int64_t>(pass));
  ApplyCompleteLocked();
  return failure_;
}

absl::Status SyncStage::Empty(RequestOrigin origin) {
  base::MutexLock lock(mu_);
  if (origin == RequestOrigin::kLog) ApplyBeforeLocked(std::numeric_limits<uint64_t>::max());
  RETURN_IF_ERROR(failure_);
  if (staged_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("step ", staged_.begin()->first, " waits for ", MissingLocked(),
                                                    "; tables are replaced when no worker trains"));
}

// Whether or not everybody has brought a part.
void SyncStage::ApplyBeforeLocked(uint64_t step) {
  while (failure_.ok() && !staged_.empty() && staged_.begin()->first < step) {
    next_ = staged_.begin()->first;
    ApplyNextLocked();
  }
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
    if (next_ >= step || now - said < kSayMissingAfter) continue;
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
  State state{next_, left_pass_, 0, before_, begun_};
  for (const auto& [number, step] : staged_)
    for (const auto& [rank, part] : step.parts)
      if (part.logged != 0 && (state.oldest == 0 || part.logged < state.oldest)) state.oldest = part.logged;
  return state;
}

void SyncStage::Restore(const State& state) {
  base::MutexLock lock(mu_);
  next_ = state.next;
  before_ = state.before;
  begun_ = state.begun;
  for (size_t rank = 0; rank < left_pass_.size() && rank < state.left_pass.size(); ++rank)
    left_pass_[rank] = state.left_pass[rank];
}

void SyncStage::CompleteSteps() {
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

void SyncStage::NoteMissedLocked(const Step& step) {
  for (int rank = 0; rank < roster_.workers(); ++rank) {
    const auto r = static_cast<size_t>(rank);
    if (step.parts.contains(rank) || left_pass_[r] >= static_cast<int64_t>(step.pass) || roster_.Expected(rank))
      continue;
    missed_[r] = true;
  }
}

bool SyncStage::WentOnWithout(int rank) {
  base::MutexLock lock(mu_);
  return missed_[static_cast<size_t>(rank)];
}

void SyncStage::ApplyNextLocked() {
  const auto it = staged_.find(next_);
  NoteMissedLocked(it->second);
  failure_ = base::Failpoint("step.complete");
  if (failure_.ok()) failure_ = ApplyLocked(it->second, next_);
  staged_.erase(it);
  ++next_;
}

void SyncStage::ApplyCompleteLocked() {
  bool applied = false;
  while (failure_.ok()) {
    const auto it = staged_.find(next_);
    if (it == staged_.end() || !CompleteLocked(it->second)) break;
    ApplyNextLocked();
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
  uint64_t samples = 0;
  for (const StepPart* part : parts) samples += part->samples;
  sum.samples = static_cast<uint32_t>(std::min<uint64_t>(samples, std::numeric_limits<uint32_t>::max()));
  table_sums_.resize(first.tables.size());
  for (size_t t = 0; t < first.tables.size(); ++t) {
    std::vector<base::TableGrads> pushes;
    for (const StepPart* part : parts) pushes.push_back(part->tables[t].View());
    sum.tables.push_back(pushes.size() == 1 ? pushes.front() : table_sums_[t].Sum(pushes));
    sum.tables.back().learning_rate = RateOf(parts, t);
  }
  AddDenseLocked(parts, sum);
  if (capture_ != nullptr) {
    ASSIGN_OR_RETURN(StepImage image, capture_(sum));
    before_ = std::make_shared<const StepImage>(std::move(image));
  }
  return apply_(sum);
}

// Parts that learnt nothing of the dense parameters are left out.
void SyncStage::AddDenseLocked(std::span<const StepPart* const> parts, Sum& sum) {
  const StepPart* only = nullptr;
  for (const StepPart* part : parts) {
    if (part->dense.empty()) continue;
    if (only == nullptr) {
      only = part;
      sum.dense = part->dense;
      sum.dense_learning_rate = part->dense_learning_rate;
      continue;
    }
    if (sum.dense.data() == only->dense.data()) dense_sum_ = only->dense;
    for (size_t i = 0; i < dense_sum_.size(); ++i) dense_sum_[i] += part->dense[i];
    sum.dense = dense_sum_;
  }
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
