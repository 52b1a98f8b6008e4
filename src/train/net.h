// What the loop trains: values of lookups and parameters in, a loss and predictions for each sample out, then
// gradients. Torch-free: memory goes in and out as views. model/torch_net.h runs libtorch models so. Thread-safety: one
// Net for each training thread, made by a NetMaker. A Net is used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/step.h"
#include "base/tensor_view.h"
#include "train/net_spec.h"

namespace regatta::train {

// float32 (offsets: int64), contiguous, on the CPU, read-only. The memory lives until the step's Backward (in
// inference: Forward or Predict) returns.
struct NetInput {
  base::StepKind kind = base::StepKind::kTrain;
  std::span<const base::TensorView> lookups;     // in order of NetSpec::lookups: [samples, width]; kNone: [ids, dim]
  std::span<const base::TensorView> offsets;     // of each lookup without pooling: [samples × slots + 1]; else empty
  std::span<const base::TensorView> parameters;  // in order of NetSpec::dense
  base::TensorView features;                     // the batch's dense features: [samples, dense_dim]
  base::TensorView labels;                       // [samples]; of several labels [samples, labels]; in Predict empty

  int64_t samples() const { return features.shape[0]; }
};

// A view for each of NetSpec::outputs: [samples]; of a binary output each value is from 0 to 1, of a regression finite.
using Predictions = std::span<const base::TensorView>;

// float32, contiguous, on the CPU. The net keeps the memory until its next Forward or Predict.
struct NetOutput {
  base::TensorView loss;  // [samples]
  Predictions predictions;
};

// Gradients in the shapes of the input, float32, contiguous, on the CPU. An empty view means that the loss does not
// depend on that input. The net keeps the memory until its next Forward or Predict; nobody writes
// to it.
struct NetGrads {
  std::span<const base::TensorView> lookups;
  std::span<const base::TensorView> parameters;
};

class Net {
 public:
  virtual ~Net() = default;
  // Constant for the life of the net, and the same for all nets of one NetMaker.
  virtual const NetSpec& spec() const = 0;
  virtual absl::StatusOr<NetOutput> Forward(const NetInput& in) = 0;
  // The predictions alone, of samples whose labels are not known: `in` has none. Always inference.
  virtual absl::StatusOr<Predictions> Predict(const NetInput& in) = 0;
  // The gradients of Σ weights[i] · loss[i] of the last Forward, which was a training step. weights is [samples].
  virtual absl::StatusOr<NetGrads> Backward(const base::TensorView& weights) = 0;
};

using NetMaker = std::function<absl::StatusOr<std::unique_ptr<Net>>()>;

}  // namespace regatta::train
