#include "comm/batch_group.h"

#include <algorithm>

#include "base/learning_rate.h"

namespace regatta::comm {
namespace {

// The learning rates of batches that are to be added up, and which batch brought them.
class RunRates {
 public:
  // FAILED_PRECONDITION if an earlier batch has another rate for a table of this one; then only Clear may follow.
  absl::Status Add(const StepCopy& part) {
    for (const base::TableGrads& table : part.tables())
      RETURN_IF_ERROR(Add(table.keys.table, table.learning_rate, part.batch()));
    return part.dense().empty() ? absl::OkStatus() : Add(kDense, part.dense_learning_rate(), part.batch());
  }
  void Clear() { rates_.clear(); }

 private:
  static constexpr int kDense = -1;
  struct Rate {
    std::optional<float> value;
    uint64_t batch = 0;
  };

  absl::Status Add(int table, std::optional<float> rate, uint64_t batch) {
    const auto [known, fresh] = rates_.try_emplace(table, Rate{rate, batch});
    if (fresh || known->second.value == rate) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("batches ", known->second.batch, " and ", batch, " are one step, and bring for ",
                     table == kDense ? "the dense parameters" : absl::StrCat("table ", table), " ",
                     base::DescribeLearningRate(known->second.value), " and ", base::DescribeLearningRate(rate)));
  }

  std::map<int, Rate> rates_;  // by table
};

}  // namespace

BatchGroup::BatchGroup(int size, int64_t dense_size, Rates rates, Send send)
    : size_(static_cast<uint64_t>(size)), dense_size_(dense_size), rates_(rates), send_(std::move(send)) {}

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
  failure_ = SendGroupLocked();
  for (auto& [step, part] : parts_) spare_.push_back(std::move(part));
  parts_.clear();
  ++sent_;
  changed_.NotifyAll();
  return failure_;
}

// All of it as one sum, or every run of batches that may be added up.
absl::Status BatchGroup::SendGroupLocked() {
  std::vector<const StepCopy*> run;
  RunRates rates;
  for (const auto& [step, part] : parts_) {
    if (const absl::Status same = rates.Add(*part); !same.ok()) {
      if (rates_ == Rates::kOneAGroup) return same;
      RETURN_IF_ERROR(SendSumLocked(run));
      run.clear();
      rates.Clear();
      RETURN_IF_ERROR(rates.Add(*part));
    }
    run.push_back(part.get());
  }
  return SendSumLocked(run);
}

// A batch may leave tables out that others of the group have.
void BatchGroup::AddTablesLocked(Parts parts, std::vector<base::TableGrads>& sum) {
  std::map<int, std::vector<base::TableGrads>> pushes;
  for (const StepCopy* part : parts)
    for (const base::TableGrads& table : part->tables()) pushes[table.keys.table].push_back(table);
  sums_.resize(std::max(sums_.size(), pushes.size()));
  for (const auto& [table, of_table] : pushes) sum.push_back(sums_[sum.size()].Sum(of_table));
}

absl::Status BatchGroup::SendSumLocked(Parts parts) {
  base::StepGrads sum;
  sum.step = sent_;
  sum.pass = pass_;
  sum.batch = parts.front()->batch();
  std::vector<base::TableGrads> tables;
  AddTablesLocked(parts, tables);
  sum.tables = tables;
  batches_.clear();
  dense_.clear();
  for (const StepCopy* part : parts) {
    batches_.push_back(part->batch());
    sum.samples += part->samples();
    if (part->dense().empty()) continue;
    sum.dense_learning_rate = part->dense_learning_rate();
    if (dense_.empty()) {
      dense_ = part->dense();
      continue;
    }
    for (size_t i = 0; i < dense_.size(); ++i) dense_[i] += part->dense()[i];
  }
  sum.batches = batches_;
  const base::DenseGrad piece{0, dense_};
  if (!dense_.empty()) sum.dense = {&piece, 1};
  return send_(sum);
}

}  // namespace regatta::comm
