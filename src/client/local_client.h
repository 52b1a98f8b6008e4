// A PsClient whose tables are in this process: a pull is a lookup and a push an update. Every Call is done when the
// method returns (docs/adr/0014-a-local-client-is-a-ps-client.md).
// Thread-safety: as PsClient.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "base/step.h"
#include "client/ps_client.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::client {

class LocalClient final : public PsClient {
 public:
  // Borrows the tables; dense may be null for a model without dense parameters.
  LocalClient(std::vector<table::SparseTable*> sparse, table::DenseTable* dense, table::NanPolicy nan_policy);

  int sparse_tables() const override { return static_cast<int>(sparse_.size()); }
  int pull_width(int table) const override { return sparse_[static_cast<size_t>(table)]->pull_width(); }
  int push_width(int table) const override { return sparse_[static_cast<size_t>(table)]->push_width(); }
  int64_t dense_size() const override { return dense_ == nullptr ? 0 : dense_->size(); }
  void Pull(const StepTag& tag, std::span<const base::TableKeys> keys, std::span<const base::RowsView<float>> out,
            Call& call) override;
  // A consistent copy of all dense parameters.
  void PullDense(const StepTag& tag, std::span<float> out, Call& call) override;
  void Push(const base::StepGrads& grads, Call& call) override;
  void PushDense(const base::StepGrads& grads, Call& call) override;
  void Add(std::span<const base::TableGrads> differences, Call& call) override;
  void AddDense(std::span<const float> differences, Call& call) override;
  // The mean over one worker: the change itself.
  void Combine(const Rounds& rounds, std::span<const base::TableGrads> differences, Call& call) override;
  void CombineDense(const Rounds& rounds, std::span<const float> differences, Call& call) override;
  // Nobody else has to know of a pass.
  void BeginPass(const StepTag& tag, const base::DataPosition& learnt, Call& call) override;
  void LeavePass(const StepTag& tag, Call& call) override;

  // An error if a learning rate of the step cannot be, or with NanPolicy::kAbort a gradient: before any table is
  // changed.
  absl::Status Check(const base::StepGrads& grads) const;
  // The live dense parameters, without a copy; for a caller whose steps do not overlap.
  std::span<const float> LiveDense() const;

 private:
  table::PushOptions OptionsOf(const base::StepGrads& grads) const {
    return {.step = grads.step, .samples = grads.samples, .nan_policy = nan_policy_, .finite = grads.finite};
  }

  const std::vector<table::SparseTable*> sparse_;
  table::DenseTable* const dense_;
  const table::NanPolicy nan_policy_;
};

}  // namespace regatta::client
