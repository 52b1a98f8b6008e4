#include "train/pull_stage.h"

#include <chrono>
#include <cstring>

#include "lookup/pooling.h"

namespace regatta::train {

PullStage::PullStage(const model::ModelSpec& spec, comm::Communicator& communicator, int thread,
                     metrics::Tracer* tracer)
    : spec_(spec), communicator_(communicator), thread_(thread), tracer_(tracer) {
  int64_t offset = 0;
  for (const model::DenseSpec& dense : spec.dense) {
    offsets_.push_back(offset);
    int64_t size = 1;
    for (int64_t extent : dense.shape) size *= extent;
    offset += size;
  }
  keys_.resize(spec.embeddings.size());
  buffers_.resize(spec.embeddings.size());
  leaves_.resize(spec.embeddings.size());
}

base::StepKeys PullStage::KeysOf(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
  for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = planned.plan.For(static_cast<int>(i));
  return {.step = step, .thread = thread_, .kind = kind, .tables = keys_};
}

absl::Status PullStage::Prefetch(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
  metrics::TraceSpan span(tracer_, "prefetch");
  return communicator_.Prefetch(KeysOf(planned, kind, step));
}

absl::Status PullStage::Run(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
  base::StepRows rows;
  {
    metrics::TraceSpan span(tracer_, "pull");
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(communicator_.Pull(KeysOf(planned, kind, step), &rows));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  rows_ = rows.tables;
  metrics::TraceSpan span(tracer_, "gather");
  for (size_t i = 0; i < leaves_.size(); ++i) {
    RETURN_IF_ERROR(Fill(static_cast<int>(i), planned, rows.tables[i]));
    leaves_[i].set_requires_grad(kind == base::StepKind::kTrain);
  }
  Bind(rows.dense, kind);
  return absl::OkStatus();
}

absl::Status PullStage::Fill(int embedding, const PlannedBatch& planned, base::RowsView<const float> rows) {
  const data::Batch& batch = *planned.batch;
  const model::EmbeddingSpec& spec = spec_.embeddings[embedding];
  if (rows.width != spec.dim)
    return absl::InternalError(
        absl::StrCat("table ", spec.table, " gives rows of ", rows.width, " floats, and the model reads ", spec.dim));
  const int64_t width = spec_.width(embedding);
  torch::Tensor& buffer = buffers_[embedding];
  if (!buffer.defined() || buffer.size(0) < batch.size) buffer = torch::empty({batch.size, width});
  // Detached, so that each step's leaf starts without a gradient.
  leaves_[embedding] = buffer.narrow(0, 0, batch.size).detach();
  float* out = buffer.data_ptr<float>();
  lookup::GatherPool(planned.plan, spec.pooling, rows, {out, width, batch.slots});
  if (spec.dense_columns == model::DenseColumns::kApart) return absl::OkStatus();
  const int64_t first = int64_t{batch.slots} * spec.dim;
  for (int sample = 0; sample < batch.size; ++sample)
    std::memcpy(out + sample * width + first, batch.dense.data() + int64_t{sample} * batch.dense_dim,
                sizeof(float) * batch.dense_dim);
  return absl::OkStatus();
}

void PullStage::Bind(std::span<const float> dense, base::StepKind kind) {
  if (dense.data() != bound_) {
    bound_ = dense.data();
    parameters_.clear();
    for (size_t i = 0; i < spec_.dense.size(); ++i) {
      // torch has no read-only tensors; nothing writes through this one.
      float* values = const_cast<float*>(dense.data()) + offsets_[i];
      parameters_.push_back(torch::from_blob(values, spec_.dense[i].shape));
    }
  }
  for (torch::Tensor& parameter : parameters_) {
    parameter.set_requires_grad(kind == base::StepKind::kTrain);
    parameter.mutable_grad() = torch::Tensor();
  }
}

}  // namespace regatta::train
