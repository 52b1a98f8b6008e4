// A model: batch in, loss and predictions out; without labels, predictions alone. It holds no weights; embeddings and
// parameters come in as tensors, so that every training thread and every mode uses the same object. Thread-safety:
// const after construction; Forward is concurrent.
#pragma once

#include <initializer_list>
#include <span>

#include "model/spec.h"
#include "model/tensor.h"

namespace regatta::model {

struct Input {
  std::span<const torch::Tensor> embeddings;  // in order of ModelSpec::lookups: [samples, width]; kNone: [ids, dim]
  std::span<const torch::Tensor> dense;       // parameters, in order of ModelSpec::dense
  torch::Tensor features;                     // the batch's dense features: [samples, dense_dim]
  torch::Tensor labels;  // [samples]; of several labels [samples, labels]; undefined if only predictions are wanted
  // Of each embedding without pooling, int64 [samples × slots + 1]: bag (sample, slot) is the embedding's rows
  // [offsets[i], offsets[i + 1]), i = sample × slots + slot. Of the others not defined.
  std::span<const torch::Tensor> offsets = {};

  // The label at that place of Schema::labels: [samples]. Undefined if only predictions are wanted.
  torch::Tensor label(int64_t place) const;
};

struct Output {
  // One per sample: [samples]; the trainer sums, weighs and differentiates. It may stay undefined if the labels are.
  torch::Tensor loss;
  // One per sample: [samples]; of several outputs [samples, outputs]. Of a binary output from 0 to 1. Not
  // differentiated.
  torch::Tensor predictions;
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

// Click or no click: cross-entropy of a logit per sample ([samples] or [samples, 1]). Without labels the loss is
// undefined.
Output BinaryOutput(const torch::Tensor& logits, const torch::Tensor& labels);
// A number: the squared error of an estimate per sample ([samples] or [samples, 1]). Without labels the same.
Output RegressionOutput(const torch::Tensor& estimates, const torch::Tensor& labels);
// Several outputs of one model, in the order of ModelSpec::outputs: the sum of their losses, each times its weight (1
// if there are no weights), and their predictions side by side. An output without a loss is only predicted.
Output Joined(std::initializer_list<Output> outputs, std::initializer_list<double> weights = {});

}  // namespace regatta::model
