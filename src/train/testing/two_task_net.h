// Two outputs of two labels by hand: of the sum s of a sample's vectors, whether it is clicked (logit s + b₀, against
// "click") and what it costs (2 s + b₁, against "price"). The loss is the cross-entropy of the one plus half the
// squared error of the other. Thread-safety: as Net.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "train/net.h"

namespace regatta::train::testing {

class TwoTaskNet : public Net {
 public:
  TwoTaskNet() {
    spec_.name = "two tasks";
    spec_.schema.labels = {"click", "price"};
    spec_.schema.sparse_slots = {"1", "2"};
    spec_.outputs = {{.name = "click", .label = "click"},
                     {.name = "price", .metric = Metric::kRegression, .label = "price"}};
    spec_.AddEmbedding({.table = "embedding", .dim = 1, .init = Init::Constant(0)});
    spec_.AddDense("bias", {2}, Init::Constant(0));
  }

  const NetSpec& spec() const override { return spec_; }

  absl::StatusOr<NetOutput> Forward(const NetInput& in) override {
    Compute(in);
    const std::span<const float> labels = in.labels.floats();
    loss_.clear(), click_slope_.clear(), price_slope_.clear();
    for (size_t s = 0; s < click_.size(); ++s) {
      const double p = click_[s], y = labels[2 * s], error = double{price_[s]} - labels[2 * s + 1];
      loss_.push_back(static_cast<float>(-y * std::log(p) - (1 - y) * std::log(1 - p) + error * error / 2));
      click_slope_.push_back(static_cast<float>(p - y));
      price_slope_.push_back(static_cast<float>(error));
    }
    return NetOutput{base::TensorView::Vector(loss_.data(), in.samples()), predictions_};
  }

  absl::StatusOr<Predictions> Predict(const NetInput& in) override {
    if (!in.labels.empty()) return absl::InternalError("Predict was given labels");
    Compute(in);
    return predictions_;
  }

  absl::StatusOr<NetGrads> Backward(const base::TensorView& weights) override {
    x_grad_.clear();
    bias_grad_ = {0, 0};
    for (size_t s = 0; s < click_slope_.size(); ++s) {
      const float weight = weights.floats()[s];
      bias_grad_[0] += weight * click_slope_[s];
      bias_grad_[1] += weight * price_slope_[s];
      x_grad_.insert(x_grad_.end(), 2, weight * (click_slope_[s] + 2 * price_slope_[s]));
    }
    lookup_grads_[0] = base::TensorView::Matrix(x_grad_.data(), static_cast<int64_t>(click_slope_.size()), 2);
    parameter_grads_[0] = base::TensorView::Vector(bias_grad_.data(), 2);
    return NetGrads{lookup_grads_, parameter_grads_};
  }

 protected:
  NetSpec spec_;

 private:
  void Compute(const NetInput& in) {
    const std::span<const float> x = in.lookups[0].floats(), bias = in.parameters[0].floats();
    click_.clear(), price_.clear();
    for (size_t s = 0; s < static_cast<size_t>(in.samples()); ++s) {
      const float sum = x[2 * s] + x[2 * s + 1];
      click_.push_back(1 / (1 + std::exp(-(sum + bias[0]))));
      price_.push_back(2 * sum + bias[1]);
    }
    predictions_ = {base::TensorView::Vector(click_.data(), in.samples()),
                    base::TensorView::Vector(price_.data(), in.samples())};
  }

  std::vector<float> click_, price_, loss_, click_slope_, price_slope_, x_grad_;
  std::array<float, 2> bias_grad_{};
  std::array<base::TensorView, 2> predictions_;
  std::array<base::TensorView, 1> lookup_grads_, parameter_grads_;
};

}  // namespace regatta::train::testing
