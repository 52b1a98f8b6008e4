// d2 = ρ·d2 + 1; g2 = ρ·g2 + g²; v = μ·v + (1−μ)·g; w −= lr·v·√((d2 + d2·ε)/(g2 + d2·ε)). Dense tables only.
#pragma once

#include <cmath>

#include "table/table_config.h"

namespace regatta::table {

struct AdamD2sum {
  float mu, rest;  // μ, 1 − μ
  float rho, epsilon;

  static constexpr int kStates = 3;  // v, g2, d2
  static RuleConfig Defaults() {
    return {.name = "adam_d2sum", .learning_rate = 5e-6, .epsilon = 1e-8, .momentum = 0.99, .rho = 0.9999};
  }
  static AdamD2sum From(const RuleConfig& c) {
    const float mu = static_cast<float>(c.momentum);
    return {mu, 1 - mu, static_cast<float>(c.rho), static_cast<float>(c.epsilon)};
  }
  void operator()(float lr, float g, float& w, float& v, float& g2, float& d2) const {
    d2 = rho * d2 + 1;
    g2 = rho * g2 + g * g;
    v = mu * v + rest * g;
    w -= lr * v * std::sqrt((d2 + d2 * epsilon) / (g2 + d2 * epsilon));
  }
};

}  // namespace regatta::table
