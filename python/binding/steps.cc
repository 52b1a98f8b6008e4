#include "binding/steps.h"

#include <algorithm>
#include <utility>

#include "base/gradient.h"

namespace regatta::binding {

Steps::Steps(comm::Communicator& communicator, table::NanPolicy nan_policy, std::vector<std::string> names)
    : communicator_(communicator),
      names_(std::move(names)),
      stepper_(communicator, 0, train::Stepper::Pulls::kInTurn, nullptr,
               nan_policy == table::NanPolicy::kAbort ? train::Stepper::BadGradients::kRefuse
                                                      : train::Stepper::BadGradients::kCount) {}

absl::Status Steps::BeginPass(uint64_t pass, uint64_t first_step) {
  return stepper_.BeginPass({.learnt = {.pass = pass}, .kind = base::StepKind::kTrain, .first_step = first_step});
}

namespace {

// How many of the calls are of different tables, from the first on: a request has each table once.
size_t OfDifferentTables(std::span<const LookupCall* const> calls) {
  for (size_t end = 0; end < calls.size(); ++end)
    for (size_t i = 0; i < end; ++i)
      if (calls[i]->table() == calls[end]->table()) return end;
  return calls.size();
}

}  // namespace

absl::Status Steps::Prefetch(const train::StepPlace& next, std::span<const LookupCall* const> calls) {
  keys_.clear();
  for (const LookupCall* call : calls.first(OfDifferentTables(calls))) keys_.push_back(call->table_keys());
  return stepper_.Prefetch(next, keys_);
}

absl::Status Steps::Pull(std::span<const PullTarget> targets) {
  std::vector<const LookupCall*> calls;
  for (const PullTarget& target : targets) calls.push_back(target.call);
  size_t begin = 0;
  do {  // without targets it pulls the dense parameters
    const size_t count = OfDifferentTables(std::span(calls).subspan(begin));
    RETURN_IF_ERROR(PullOnce(targets.subspan(begin, count)));
    begin += count;
  } while (begin < targets.size());
  return absl::OkStatus();
}

absl::Status Steps::PullOnce(std::span<const PullTarget> targets) {
  keys_.clear();
  for (const PullTarget& target : targets) keys_.push_back(target.call->table_keys());
  ASSIGN_OR_RETURN(const base::StepRows rows, stepper_.Pull(keys_));
  dense_ = rows.dense;
  for (size_t i = 0; i < targets.size(); ++i) {
    const PullTarget& target = targets[i];
    const base::RowsView<const float>& from = rows.tables[i];
    if (from.width != target.width)
      return absl::FailedPreconditionError(absl::StrCat("table ", target.call->table(), " gives rows of ", from.width,
                                                        " floats, and the lookup wants ", target.width));
    target.call->Gather(from, target.out);
    if (target.rows == nullptr) continue;
    for (int64_t k = 0; k < target.call->keys(); ++k)
      std::copy_n(from.row(k), from.width, target.rows + k * from.width);
  }
  return absl::OkStatus();
}

absl::Status Steps::Commit(uint32_t samples, std::span<const CommitPart> parts, std::span<const base::DenseGrad> dense,
                           std::optional<float> dense_learning_rate) {
  grads_.clear();
  for (const CommitPart& part : parts)
    grads_.push_back({.keys = part.call->table_keys(),
                      .grads = part.grads,
                      .slot = {},
                      .show = {},
                      .click = {},
                      .learning_rate = part.learning_rate});
  const absl::Status status = stepper_.Commit(samples, grads_, dense, dense_learning_rate);
  if (status.ok() || (bad_rows() == 0 && !bad_dense())) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), DescribeBad(parts)));
}

// The first of the bad gradients, and what helps.
std::string Steps::DescribeBad(std::span<const CommitPart> parts) const {
  std::string first;
  for (const CommitPart& part : parts) {
    const std::span<const base::Key> keys = part.call->table_keys().keys;
    const auto width = static_cast<size_t>(part.grads.width);
    for (size_t i = 0; i < keys.size() && first.empty(); ++i) {
      const std::span<const float> row(part.grads.row(static_cast<int64_t>(i)), width);
      if (base::AllFinite(row)) continue;
      const size_t element = base::FirstNonFinite(row);
      first = absl::StrCat("; the first is key ", static_cast<int64_t>(keys[i]), " of table '",
                           names_[static_cast<size_t>(part.call->table())], "', with ", row[element], " at element ",
                           element);
    }
  }
  return absl::StrCat(first,
                      ". Look at the loss of this batch; a lower learning rate or clipping helps against growing "
                      "gradients. regattarec.torch.init(nan_policy='skip') leaves such rows out, with a warning");
}

}  // namespace regatta::binding
