// r = ρ·r + (1−ρ)·g²; w −= lr·g/(√r + ε). Dense tables only.
#pragma once

#include <cmath>

#include "table/table_config.h"

namespace regatta::table {

struct DecayedAdagrad {
  float rho, rest;  // ρ, 1 − ρ
  float epsilon;

  static constexpr int kStates = 1;
  static RuleConfig Defaults() {
    return {.name = "decayed_adagrad", .learning_rate = 0.001, .epsilon = 1e-6, .rho = 0.95};
  }
  static DecayedAdagrad From(const RuleConfig& c) {
    const float rho = static_cast<float>(c.rho);
    return {rho, 1 - rho, static_cast<float>(c.epsilon)};
  }
  void operator()(float lr, float g, float& w, float& r) const {
    r = rho * r + rest * (g * g);
    w -= lr * g / (std::sqrt(r) + epsilon);
  }
};

}  // namespace regatta::table
