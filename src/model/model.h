// A model: batch in, loss and predictions out. It holds no weights; embeddings and parameters come in as tensors, so
// that every training thread and every mode uses the same object.
// Thread-safety: const after construction; Forward is concurrent.
#pragma once

#include <span>

#include "model/spec.h"
#include "model/tensor.h"

namespace regatta::model {

struct Input {
  std::span<const torch::Tensor> embeddings;  // in order of ModelSpec::lookups: [samples, width]; kNone: [ids, dim]
  std::span<const torch::Tensor> dense;       // parameters, in order of ModelSpec::dense
  torch::Tensor features;                     // the batch's dense features: [samples, dense_dim]
  torch::Tensor labels;                       // [samples]
  // Of each embedding without pooling, int64 [samples × slots + 1]: bag (sample, slot) is the embedding's rows
  // [offsets[i], offsets[i + 1]), i = sample × slots + slot. Of the others not defined.
  std::span<const torch::Tensor> offsets = {};
};

struct Output {
  torch::Tensor loss;         // one per sample: [samples]; the trainer sums, weighs and differentiates
  torch::Tensor predictions;  // one per sample, in [0, 1]; not differentiated
};

class Model {
 public:
  virtual ~Model() = default;
  const ModelSpec& spec() const { return spec_; }
  // May throw c10::Error; the trainer catches it.
  virtual Output Forward(const Input& in) const = 0;

 protected:
  ModelSpec spec_;
};

// Click or no click: cross-entropy of a logit per sample ([samples] or [samples, 1]).
Output BinaryOutput(const torch::Tensor& logits, const torch::Tensor& labels);

}  // namespace regatta::model
