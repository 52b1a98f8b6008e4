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
    const int64_t samples = in.samples();
    const std::span<const float> labels = in.labels.floats();
    const std::vector<double> predictions = Probabilities(in);
    loss_.clear(), slope_.clear();
    for (size_t s = 0; s < predictions.size(); ++s) {
      const double p = predictions[s], y = labels[s];
      loss_.push_back(static_cast<float>(-y * std::log(p) - (1 - y) * std::log(1 - p)));
      slope_.push_back(static_cast<float>(p - y));
    }
    return NetOutput{base::TensorView::Vector(loss_.data(), samples), views_};
  }

  absl::StatusOr<Predictions> Predict(const NetInput& in) override {
    Probabilities(in);
    return views_;
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
  // Also as the predictions that views_ is of.
  std::vector<double> Probabilities(const NetInput& in) {
    const int64_t samples = in.samples();
    const std::span<const float> x = in.lookups[0].floats();
    width_ = in.lookups[0].shape[1];
    std::vector<double> probabilities;
    for (int64_t s = 0; s < samples; ++s) {
      double logit = in.parameters[0].floats()[0];
      for (int64_t j = 0; j < width_; ++j) logit += x[static_cast<size_t>(s * width_ + j)];
      probabilities.push_back(1 / (1 + std::exp(-logit)));
    }
    predictions_.assign(probabilities.begin(), probabilities.end());
    views_[0] = base::TensorView::Vector(predictions_.data(), samples);
    return probabilities;
  }

  std::vector<float> loss_, predictions_, slope_, x_grad_;
  int64_t width_ = 0;
  float bias_grad_ = 0;
  std::array<base::TensorView, 1> views_, lookup_grads_, parameter_grads_;
};

// The same with outputs and gradients that a test spoils.
class SpoiltNet : public LogisticNet {
 public:
  // The views of an output, which a test may change.
  struct Output {
    base::TensorView loss;
    std::vector<base::TensorView> predictions;
  };
  using Spoil = std::function<absl::Status(Output&)>;
  using SpoilGrads = std::function<absl::Status(std::vector<base::TensorView>&, std::vector<base::TensorView>&)>;
  explicit SpoiltNet(Spoil output, SpoilGrads grads) : output_(std::move(output)), grads_(std::move(grads)) {}

  absl::StatusOr<NetOutput> Forward(const NetInput& in) override {
    ASSIGN_OR_RETURN(const NetOutput right, LogisticNet::Forward(in));
    spoilt_ = {right.loss, {right.predictions.begin(), right.predictions.end()}};
    if (output_) RETURN_IF_ERROR(output_(spoilt_));
    return NetOutput{spoilt_.loss, spoilt_.predictions};
  }
  absl::StatusOr<Predictions> Predict(const NetInput& in) override {
    ASSIGN_OR_RETURN(const Predictions right, LogisticNet::Predict(in));
    spoilt_ = {{}, {right.begin(), right.end()}};
    if (output_) RETURN_IF_ERROR(output_(spoilt_));
    return spoilt_.predictions;
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
  Output spoilt_;
  const SpoilGrads grads_;
  std::vector<base::TensorView> lookups_, parameters_;
};

template <typename AnyNet, typename... Args>
NetMaker NetsOf(Args... args) {
  return [args...]() -> absl::StatusOr<std::unique_ptr<Net>> { return std::make_unique<AnyNet>(args...); };
}

}  // namespace regatta::train::testing
