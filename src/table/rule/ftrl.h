// Ftrl-proximal: σ = (√(n + g²) − √n)/α; z += g − σ·w; n += g²; w = 0 where |z| ≤ λ1, else
// −(z − sign(z)·λ1)/((β + √n)/α + λ2). α is the learning rate (RuleConfig::alpha where set).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "table/table_config.h"

namespace regatta::table {

struct Ftrl {
  float beta, lambda1, lambda2;

  static constexpr int kStates = 2;
  static RuleConfig Defaults() {
    return {.name = "ftrl", .learning_rate = 0.05, .beta = 1, .lambda1 = 0, .lambda2 = 0};
  }
  static double LearningRate(const RuleConfig& c) { return c.alpha > 0 ? c.alpha : c.learning_rate; }
  static Ftrl From(const RuleConfig& c) {
    return {static_cast<float>(c.beta), static_cast<float>(c.lambda1), static_cast<float>(c.lambda2)};
  }
  void operator()(float alpha, float g, float& w, float& z, float& n) const {
    const float root = std::sqrt(n + g * g);
    z += g - (root - std::sqrt(n)) / alpha * w;
    n += g * g;
    // max in the place of two cases, so that it vectorises: 0 where |z| ≤ λ1, also when the divisor is 0.
    const float shrunk = std::copysign(std::max(std::fabs(z) - lambda1, 0.0f), z);
    const float divisor = std::max((beta + root) / alpha + lambda2, std::numeric_limits<float>::min());
    w = 0.0f - shrunk / divisor;
  }
};

}  // namespace regatta::table
