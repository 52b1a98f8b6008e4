#include "client/local_client.h"

namespace regatta::client {

LocalClient::LocalClient(std::vector<table::SparseTable*> sparse, table::DenseTable* dense, table::NanPolicy nan_policy)
    : sparse_(std::move(sparse)), dense_(dense), nan_policy_(nan_policy) {}

absl::Status LocalClient::PullRows(const base::TableKeys& keys, base::StepKind kind, base::RowsView<float> out) {
  return sparse_[keys.table]->Pull(keys, kind, out);
}

absl::Status LocalClient::PullDense(std::span<float> out) {
  if (dense_ != nullptr) dense_->Snapshot(out);
  return absl::OkStatus();
}

absl::Status LocalClient::CheckFinite(const base::StepGrads& grads) const {
  for (const base::TableGrads& table : grads.tables) RETURN_IF_ERROR(sparse_[table.keys.table]->CheckFinite(table));
  if (dense_ == nullptr) return absl::OkStatus();
  for (const base::DenseGrad& grad : grads.dense) RETURN_IF_ERROR(dense_->CheckFinite(grad));
  return absl::OkStatus();
}

absl::Status LocalClient::Push(const base::StepGrads& grads) {
  if (nan_policy_ == table::NanPolicy::kAbort) RETURN_IF_ERROR(CheckFinite(grads));  // before any table is changed
  const table::PushOptions options{.step = grads.step, .samples = grads.samples, .nan_policy = nan_policy_};
  for (const base::TableGrads& table : grads.tables) RETURN_IF_ERROR(sparse_[table.keys.table]->Push(table, options));
  if (dense_ == nullptr || grads.dense.empty()) return absl::OkStatus();
  return dense_->Push(grads.dense, options);
}

std::span<const float> LocalClient::LiveDense() const {
  return dense_ == nullptr ? std::span<const float>() : dense_->Values();
}

}  // namespace regatta::client
