#include "train/stepper.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/elapsed.h"
#include "base/gradient.h"
#include "base/grouped_keys.h"
#include "base/learning_rate.h"

namespace regatta::train {
namespace {

absl::Status CheckParts(std::span<const base::TableGrads* const> parts) {
  const int table = parts.front()->keys.table, width = parts.front()->grads.width;
  for (const base::TableGrads* part : parts) {
    if (part->grads.width != width)
      return absl::InvalidArgumentError(absl::StrCat("the gradients of table ", table, " come with ", width, " and ",
                                                     part->grads.width, " floats a key"));
    if (part->learning_rate != parts.front()->learning_rate)
      return absl::InvalidArgumentError(absl::StrCat("the gradients of table ", table, " come with ",
                                                     base::DescribeLearningRate(parts.front()->learning_rate), " and ",
                                                     base::DescribeLearningRate(part->learning_rate)));
    if (!part->slot.empty() || !part->show.empty() || !part->click.empty())
      return absl::UnimplementedError(
          absl::StrCat("gradients of table ", table, " with slot, show or click columns come in one part only"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Stepper::EndPass() {
  RETURN_IF_ERROR(communicator_.LeavePass());
  return communicator_.EndPass();
}

bool Stepper::prefetches() const { return communicator_.traits().prefetches; }

absl::Status Stepper::Prefetch(const StepPlace& next, std::span<const base::TableKeys> tables) {
  metrics::TraceSpan span(tracer_, "prefetch");
  return communicator_.Prefetch({.step = next.step, .thread = thread_, .kind = next.kind, .tables = tables});
}

void Stepper::BeginStep(const StepPlace& place) {
  place_ = place;
  state_ = State::kBegun;
  pulls_done_ = 0;
  pull_seconds_ = commit_seconds_ = 0;
  bad_rows_ = 0;
  bad_dense_ = false;
}

absl::StatusOr<base::StepRows> Stepper::Pull(std::span<const base::TableKeys> tables) {
  if (state_ == State::kIdle) return absl::FailedPreconditionError("Pull: no step was begun (BeginStep)");
  if (pulls_ == Pulls::kOne && state_ == State::kPulled)
    return absl::FailedPreconditionError(
        absl::StrCat("step ", place_.step, " pulls a second time: make the Stepper with Pulls::kSeveral"));
  base::StepRows rows;
  {
    metrics::TraceSpan span(tracer_, "pull");
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(
        communicator_.Pull({.step = place_.step, .thread = thread_, .kind = place_.kind, .tables = tables}, &rows));
    pull_seconds_ += base::SecondsSince(start);
  }
  state_ = State::kPulled;
  if (pulls_ == Pulls::kSeveral) Keep(tables, &rows);
  return rows;
}

// The communicator has room for the rows of one pull.
void Stepper::Keep(std::span<const base::TableKeys> tables, base::StepRows* rows) {
  if (copies_.size() == pulls_done_) copies_.emplace_back();
  Copies& copies = copies_[pulls_done_++];
  if (copies.rows.size() < tables.size()) copies.rows.resize(tables.size());
  copies.views.clear();
  for (size_t t = 0; t < tables.size(); ++t) {
    const base::RowsView<const float>& from = rows->tables[t];
    const auto width = static_cast<size_t>(from.width), count = tables[t].keys.size();
    base::RawVector<float>& to = copies.rows[t];
    if (to.size() < count * width) to.resize(count * width);
    for (size_t i = 0; i < count; ++i) std::copy_n(from.row(static_cast<int64_t>(i)), width, to.data() + i * width);
    copies.views.push_back({to.data(), from.width, from.width});
  }
  rows->tables = copies.views;
}

absl::Status Stepper::Commit(uint32_t samples, std::span<const base::TableGrads> tables,
                             std::span<const base::DenseGrad> dense, std::optional<float> dense_learning_rate) {
  if (state_ != State::kPulled)
    return absl::FailedPreconditionError(absl::StrCat("step ", place_.step, " has pulled nothing to commit"));
  if (place_.kind == base::StepKind::kInfer)
    return absl::FailedPreconditionError(
        absl::StrCat("step ", place_.step, " is one of inference: it commits nothing"));
  if (samples == 0 && !(tables.empty() && dense.empty()))
    return absl::InvalidArgumentError(absl::StrCat("step ", place_.step, " brings gradients of no samples"));
  state_ = State::kIdle;
  ASSIGN_OR_RETURN(const std::span<const base::TableGrads> merged, OneForEachTable(tables));
  CountBad(merged, dense);
  if (bad_gradients_ == BadGradients::kRefuse && (bad_rows_ > 0 || bad_dense_))
    return absl::FailedPreconditionError(absl::StrCat("step ", place_.step, ": gradients of ", bad_rows_, " rows",
                                                      bad_dense_ ? " and of the dense parameters" : "",
                                                      " hold NaN or Inf; nothing was committed"));
  metrics::TraceSpan span(tracer_, "commit");
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(communicator_.Commit({.step = place_.step,
                                        .thread = thread_,
                                        .samples = samples,
                                        .tables = merged,
                                        .dense = dense,
                                        .batch = place_.batch,
                                        .pass = place_.pass,
                                        .dense_learning_rate = dense_learning_rate,
                                        .finite = bad_rows_ == 0 && !bad_dense_}));
  commit_seconds_ = base::SecondsSince(start);
  return absl::OkStatus();
}

absl::StatusOr<base::TableGrads> Stepper::AddUp(std::span<const base::TableGrads* const> parts, Sum& sum) {
  RETURN_IF_ERROR(CheckParts(parts));
  const int table = parts.front()->keys.table, width = parts.front()->grads.width;
  std::vector<base::Key> all;
  for (const base::TableGrads* part : parts) all.insert(all.end(), part->keys.keys.begin(), part->keys.keys.end());
  const base::GroupedKeys grouped(std::move(all), table);
  const base::TableKeys view = grouped.view();
  sum.keys.assign(view.keys.begin(), view.keys.end());
  sum.shard_begin.assign(view.shard_begin.begin(), view.shard_begin.end());
  sum.grads.assign(sum.keys.size() * static_cast<size_t>(width), 0.0f);
  absl::flat_hash_map<base::Key, size_t> row_of;
  row_of.reserve(sum.keys.size());
  for (size_t i = 0; i < sum.keys.size(); ++i) row_of[sum.keys[i]] = i;
  for (const base::TableGrads* part : parts)
    for (size_t i = 0; i < part->keys.keys.size(); ++i) {
      float* const to = sum.grads.data() + row_of[part->keys.keys[i]] * static_cast<size_t>(width);
      const float* const from = part->grads.row(static_cast<int64_t>(i));
      for (int j = 0; j < width; ++j) to[j] += from[j];
    }
  return base::TableGrads{.keys = {table, sum.keys, sum.shard_begin},
                          .grads = {sum.grads.data(), width, width},
                          .slot = {},
                          .show = {},
                          .click = {},
                          .learning_rate = parts.front()->learning_rate};
}

absl::StatusOr<std::span<const base::TableGrads>> Stepper::OneForEachTable(std::span<const base::TableGrads> tables) {
  bool several = false;
  for (size_t t = 1; t < tables.size(); ++t)
    for (size_t u = 0; u < t; ++u) several |= tables[t].keys.table == tables[u].keys.table;
  if (!several) return tables;
  std::map<int, std::vector<const base::TableGrads*>> parts;
  for (const base::TableGrads& table : tables) parts[table.keys.table].push_back(&table);
  sums_.resize(parts.size());
  merged_.clear();
  for (const auto& [table, of_table] : parts) {
    if (of_table.size() == 1) {
      merged_.push_back(*of_table.front());
      continue;
    }
    ASSIGN_OR_RETURN(merged_.emplace_back(), AddUp(of_table, sums_[merged_.size()]));
  }
  return std::span<const base::TableGrads>(merged_);
}

void Stepper::CountBad(std::span<const base::TableGrads> tables, std::span<const base::DenseGrad> dense) {
  bad_rows_ = 0;
  for (const base::TableGrads& table : tables)
    bad_rows_ += base::CountNonFiniteRows(table.grads, table.keys.keys.size());
  bad_dense_ = false;
  for (const base::DenseGrad& grad : dense) bad_dense_ |= !base::AllFinite(grad.values);
}

}  // namespace regatta::train
