// The embedded default: the tables are in this process, a pull is a lookup and a push an update.
// Thread-safety: as PsClient.
#pragma once

#include <memory>
#include <vector>

#include "client/ps_client.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::client {

class LocalClient : public PsClient {
 public:
  // Borrows the tables; dense may be null for a model without dense parameters.
  LocalClient(std::vector<table::SparseTable*> sparse, table::DenseTable* dense, table::NanPolicy nan_policy);

  int sparse_tables() const override { return static_cast<int>(sparse_.size()); }
  int pull_width(int table) const override { return sparse_[table]->pull_width(); }
  int64_t dense_size() const override { return dense_ == nullptr ? 0 : dense_->size(); }
  absl::Status PullRows(const base::TableKeys& keys, base::StepKind kind, base::RowsView<float> out) override;
  absl::Status PullDense(std::span<float> out) override;
  absl::Status Push(const base::StepGrads& grads) override;

  // The live dense parameters, without a copy; for a caller whose steps do not overlap.
  std::span<const float> LiveDense() const;

 private:
  const std::vector<table::SparseTable*> sparse_;
  table::DenseTable* const dense_;
  const table::NanPolicy nan_policy_;
};

}  // namespace regatta::client
