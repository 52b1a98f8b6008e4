#include "client/local_client.h"

namespace regatta::client {
namespace {

// A call that expects nothing is done: only an error has to reach its Wait.
void Finish(const absl::Status& status, Call& call) {
  if (status.ok()) return;
  call.Expect(1);
  call.Done(status);
}

}  // namespace

LocalClient::LocalClient(std::vector<table::SparseTable*> sparse, table::DenseTable* dense, table::NanPolicy nan_policy)
    : sparse_(std::move(sparse)), dense_(dense), nan_policy_(nan_policy) {}

void LocalClient::Pull(const StepTag& tag, std::span<const base::TableKeys> keys,
                       std::span<const base::RowsView<float>> out, Call& call) {
  for (size_t i = 0; i < keys.size(); ++i)
    Finish(sparse_[static_cast<size_t>(keys[i].table)]->Pull(keys[i], tag.kind, out[i]), call);
}

void LocalClient::PullDense(const StepTag&, std::span<float> out, Call&) {
  if (dense_ != nullptr) dense_->Snapshot(out);
}

void LocalClient::Push(const base::StepGrads& grads, Call& call) {
  const table::PushOptions options = OptionsOf(grads);
  for (const base::TableGrads& table : grads.tables)
    Finish(sparse_[static_cast<size_t>(table.keys.table)]->Push(table, options), call);
}

void LocalClient::PushDense(const base::StepGrads& grads, Call& call) {
  if (dense_ == nullptr || grads.dense.empty()) return;
  Finish(dense_->Push(grads.dense, OptionsOf(grads), grads.dense_learning_rate), call);
}

void LocalClient::Add(std::span<const base::TableGrads> differences, Call& call) {
  for (const base::TableGrads& table : differences)
    Finish(sparse_[static_cast<size_t>(table.keys.table)]->Add(table, nan_policy_), call);
}

void LocalClient::AddDense(std::span<const float> differences, Call& call) {
  if (dense_ != nullptr) Finish(dense_->Add(differences, nan_policy_), call);
}

void LocalClient::Combine(const Rounds&, std::span<const base::TableGrads> differences, Call& call) {
  Add(differences, call);
}

void LocalClient::CombineDense(const Rounds&, std::span<const float> differences, Call& call) {
  AddDense(differences, call);
}

void LocalClient::BeginPass(const StepTag&, const base::DataPosition&, Call&) {}

void LocalClient::LeavePass(const StepTag&, Call&) {}

absl::Status LocalClient::Check(const base::StepGrads& grads) const {
  for (const base::TableGrads& table : grads.tables)
    RETURN_IF_ERROR(sparse_[static_cast<size_t>(table.keys.table)]->CheckLearningRate(table.learning_rate));
  if (dense_ != nullptr) RETURN_IF_ERROR(dense_->CheckLearningRate(grads.dense_learning_rate));
  if (grads.finite || nan_policy_ != table::NanPolicy::kAbort) return absl::OkStatus();
  for (const base::TableGrads& table : grads.tables)
    RETURN_IF_ERROR(sparse_[static_cast<size_t>(table.keys.table)]->CheckFinite(table));
  if (dense_ == nullptr) return absl::OkStatus();
  for (const base::DenseGrad& grad : grads.dense) RETURN_IF_ERROR(dense_->CheckFinite(grad));
  return absl::OkStatus();
}

std::span<const float> LocalClient::LiveDense() const {
  return dense_ == nullptr ? std::span<const float>() : dense_->Values();
}

}  // namespace regatta::client
