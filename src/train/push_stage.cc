#include "train/push_stage.h"

#include <chrono>
#include <cmath>

#include "base/gradient.h"
#include "lookup/pooling.h"

namespace regatta::train {
namespace {

void AddL2(double scale, base::RowsView<const float> rows, size_t count, base::RawVector<float>& merged) {
  for (size_t u = 0; u < count; ++u)
    for (int j = 0; j < rows.width; ++j) merged[u * rows.width + j] += static_cast<float>(scale) * rows.row(u)[j];
}

}  // namespace

PushStage::PushStage(const model::ModelSpec& spec, comm::Communicator& communicator, int thread, double clip_by_norm,
                     metrics::Tracer* tracer)
    : spec_(spec), communicator_(communicator), thread_(thread), clip_by_norm_(clip_by_norm), tracer_(tracer) {
  merged_.resize(spec.embeddings.size());
  tables_.resize(spec.embeddings.size());
}

absl::Status PushStage::Run(const PlannedBatch& planned, const PullStage& pulled, uint64_t step) {
  const auto samples = static_cast<uint32_t>(planned.batch->size);
  held_.clear();
  {
    metrics::TraceSpan span(tracer_, "merge");
    Merge(planned, pulled);
    CollectDense(pulled, samples);
    CountBad();
  }
  metrics::TraceSpan span(tracer_, "commit");
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(communicator_.Commit({.step = step,
                                        .thread = thread_,
                                        .samples = samples,
                                        .tables = tables_,
                                        .dense = dense_,
                                        .batch = planned.batch->index,
                                        .pass = planned.batch->pass}));
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return absl::OkStatus();
}

void PushStage::Merge(const PlannedBatch& planned, const PullStage& pulled) {
  for (size_t i = 0; i < spec_.embeddings.size(); ++i) {
    const model::EmbeddingSpec& spec = spec_.embeddings[i];
    base::RawVector<float>& merged = merged_[i];
    const size_t need = planned.plan.keys.size() * spec.dim;
    if (merged.size() < need) merged.resize(need + need / 8);
    torch::Tensor grad = pulled.leaves()[i].grad();
    if (grad.defined()) {
      grad = grad.contiguous();
      held_.push_back(grad);
      lookup::MergeGradients(planned.plan, spec.pooling,
                             {grad.data_ptr<float>(), spec_.width(static_cast<int>(i)), planned.batch->slots},
                             {merged.data(), spec.dim, spec.dim});
    } else {  // the loss does not depend on this embedding
      std::fill_n(merged.begin(), need, 0.0f);
    }
    if (spec.l2 > 0) AddL2(spec.l2 * planned.batch->size, pulled.rows()[i], planned.plan.keys.size(), merged);
    tables_[i] = {.keys = planned.plan.For(static_cast<int>(i)),
                  .grads = {merged.data(), spec.dim, spec.dim},
                  .slot = {},
                  .show = {},
                  .click = {}};
  }
}

void PushStage::CountBad() {
  bad_rows_ = 0;
  for (const base::TableGrads& table : tables_)
    bad_rows_ += base::CountNonFiniteRows(table.grads, table.keys.keys.size());
  bad_dense_ = false;
  for (const base::DenseGrad& grad : dense_) bad_dense_ |= !base::AllFinite(grad.values);
}

void PushStage::CollectDense(const PullStage& pulled, uint32_t samples) {
  dense_.clear();
  double square = 0;
  for (size_t i = 0; i < pulled.parameters().size(); ++i) {
    const torch::Tensor& parameter = pulled.parameters()[i];
    torch::Tensor grad = parameter.grad();
    grad = grad.defined() ? grad.contiguous() : torch::zeros_like(parameter);
    held_.push_back(grad);
    if (clip_by_norm_ > 0) square += std::pow(grad.norm().item<double>() / samples, 2);
    dense_.push_back({pulled.parameter_offsets()[i], {grad.data_ptr<float>(), static_cast<size_t>(grad.numel())}});
  }
  const double norm = std::sqrt(square);
  if (clip_by_norm_ <= 0 || norm <= clip_by_norm_) return;
  torch::NoGradGuard no_grad;
  const size_t first = held_.size() - pulled.parameters().size();
  for (size_t i = first; i < held_.size(); ++i) held_[i].mul_(clip_by_norm_ / norm);
}

}  // namespace regatta::train
