// r = ρ·r + (1−ρ)·g²; w −= lr·g/√(r + ε). Centred: a = ρ·a + (1−ρ)·g and √(r − a² + ε). With momentum μ > 0 the step
// u = μ·u + lr·g/√(…) is taken instead.
#pragma once

#include <algorithm>
#include <cmath>

#include "table/table_config.h"

namespace regatta::table {

// States: r, then a where centred, then u where there is momentum.
template <bool kCentered, bool kMomentum>
struct Rmsprop {
  float rho, rest;  // ρ, 1 − ρ
  float epsilon;
  float mu;

  static constexpr int kStates = 1 + kCentered + kMomentum;
  static RuleConfig Defaults() {
    return {.name = "rmsprop", .learning_rate = 0.001, .epsilon = 1e-6, .momentum = 0, .rho = 0.95};
  }
  static Rmsprop From(const RuleConfig& c) {
    const float rho = static_cast<float>(c.rho);
    return {rho, 1 - rho, static_cast<float>(c.epsilon), static_cast<float>(c.momentum)};
  }

  template <typename... Rest>
  void operator()(float lr, float g, float& w, float& r, Rest&... states) const {
    float* const more[] = {&states..., nullptr};
    r = rho * r + rest * (g * g);
    float variance = r;
    if constexpr (kCentered) {
      float& a = *more[0];
      a = rho * a + rest * g;
      variance = std::max(r - a * a, 0.0f);  // rounding may leave it below 0
    }
    float step = lr * g / std::sqrt(variance + epsilon);
    if constexpr (kMomentum) {
      float& u = *more[kCentered];
      u = mu * u + step;
      step = u;
    }
    w -= step;
  }
};

}  // namespace regatta::table
