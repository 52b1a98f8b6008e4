// Logistic regression by hand: a logit that is the sum of a sample's vectors and a bias. A net that needs no torch.
// Thread-safety: as Net.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "train/net.h"

namespace regatta::train::testing {

class LogisticNet : public Net {
 public:
  explicit LogisticNet(int dim = 1) {
    spec_.name = "logistic";
    spec_.schema.sparse_slots = {"1", "2"};
    spec_.AddEmbedding({.table = "embedding", .dim = dim, .init = Init::Constant(0)});
    spec_.AddDense("bias", {1}, Init::Constant(0));
  }

  const NetSpec& spec() const override { return spec_; }

  absl::StatusOr<NetOutput> Forward(const NetInput& in) override {
    const int64_t samples = in.labels.shape[0], width = in.lookups[0].shape[1];
    const std::span<const float> x = in.lookups[0].floats(), labels = in.labels.floats();
    loss_.clear(), predictions_.clear(), slope_.clear();
    for (int64_t s = 0; s < samples; ++s) {
      double logit = in.parameters[0].floats()[0];
      for (int64_t j = 0; j < width; ++j) logit += x[static_cast<size_t>(s * width + j)];
      const double p = 1 / (1 + std::exp(-logit)), y = labels[static_cast<size_t>(s)];
      loss_.push_back(static_cast<float>(-y * std::log(p) - (1 - y) * std::log(1 - p)));
      predictions_.push_back(static_cast<float>(p));
      slope_.push_back(static_cast<float>(p - y));
    }
    width_ = width;
    return NetOutput{base::TensorView::Vector(loss_.data(), samples),
                     base::TensorView::Vector(predictions_.data(), samples)};
  }

  absl::StatusOr<NetGrads> Backward(const base::TensorView& weights) override {
    x_grad_.clear();
    bias_grad_ = 0;
    for (size_t s = 0; s < slope_.size(); ++s) {
      const float slope = slope_[s] * weights.floats()[s];
      bias_grad_ += slope;
      x_grad_.insert(x_grad_.end(), static_cast<size_t>(width_), slope);
    }
    lookup_grads_[0] = base::TensorView::Matrix(x_grad_.data(), static_cast<int64_t>(slope_.size()), width_);
    parameter_grads_[0] = base::TensorView::Vector(&bias_grad_, 1);
    return NetGrads{lookup_grads_, parameter_grads_};
  }

 protected:
  NetSpec spec_;

 private:
  std::vector<float> loss_, predictions_, slope_, x_grad_;
  int64_t width_ = 0;
  float bias_grad_ = 0;
  std::array<base::TensorView, 1> lookup_grads_, parameter_grads_;
};

// The same with outputs and gradients that a test spoils.
class SpoiltNet : public LogisticNet {
 public:
  using Spoil = std::function<absl::Status(NetOutput&)>;
  using SpoilGrads = std::function<absl::Status(std::vector<base::TensorView>&, std::vector<base::TensorView>&)>;
  explicit SpoiltNet(Spoil output, SpoilGrads grads) : output_(std::move(output)), grads_(std::move(grads)) {}

  absl::StatusOr<NetOutput> Forward(const NetInput& in) override {
    ASSIGN_OR_RETURN(NetOutput out, LogisticNet::Forward(in));
    if (output_) RETURN_IF_ERROR(output_(out));
    return out;
  }
  absl::StatusOr<NetGrads> Backward(const base::TensorView& weights) override {
    ASSIGN_OR_RETURN(const NetGrads right, LogisticNet::Backward(weights));
    lookups_.assign(right.lookups.begin(), right.lookups.end());
    parameters_.assign(right.parameters.begin(), right.parameters.end());
    if (grads_) RETURN_IF_ERROR(grads_(lookups_, parameters_));
    return NetGrads{lookups_, parameters_};
  }

 private:
  const Spoil output_;
  const SpoilGrads grads_;
  std::vector<base::TensorView> lookups_, parameters_;
};

template <typename AnyNet, typename... Args>
NetMaker NetsOf(Args... args) {
  return [args...]() -> absl::StatusOr<std::unique_ptr<Net>> { return std::make_unique<AnyNet>(args...); };
}

}  // namespace regatta::train::testing
