// The embedded default: the tables are in this process, a pull is a lookup and a push an update, done when the call
// returns. No PsClient: nothing is in flight.
// Thread-safety: all methods are concurrent; the memory that a call is given belongs to it until it returns.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "base/step.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::client {

class LocalClient {
 public:
  // Borrows the tables; dense may be null for a model without dense parameters.
  LocalClient(std::vector<table::SparseTable*> sparse, table::DenseTable* dense, table::NanPolicy nan_policy);

  int sparse_tables() const { return static_cast<int>(sparse_.size()); }
  int pull_width(int table) const { return sparse_[table]->pull_width(); }
  int64_t dense_size() const { return dense_ == nullptr ? 0 : dense_->size(); }
  // out.row(i) = the row of keys.keys[i], pull_width floats.
  absl::Status PullRows(const base::TableKeys& keys, base::StepKind kind, base::RowsView<float> out);
  // A consistent copy of all dense parameters.
  absl::Status PullDense(std::span<float> out);
  // Afterwards the step is applied to every table once.
  absl::Status Push(const base::StepGrads& grads);

  // The live dense parameters, without a copy; for a caller whose steps do not overlap.
  std::span<const float> LiveDense() const;

 private:
  absl::Status CheckFinite(const base::StepGrads& grads) const;

  const std::vector<table::SparseTable*> sparse_;
  table::DenseTable* const dense_;
  const table::NanPolicy nan_policy_;
};

}  // namespace regatta::client
