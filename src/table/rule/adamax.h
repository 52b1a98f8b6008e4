// m = β1·m + (1−β1)·g; u = max(β2·u + ε, |g|); w −= lr/(1−β1ᵗ)·m/u. Dense tables only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "table/table_config.h"

namespace regatta::table {

struct Adamax {
  double beta1;
  float beta2, epsilon;

  struct Element {
    float beta1, rest1, beta2, epsilon;
    float rate;  // lr / (1 − β1ᵗ)
    static constexpr int kStates = 2;
    void operator()(float, float g, float& w, float& m, float& u) const {
      m = beta1 * m + rest1 * g;
      u = std::max(beta2 * u + epsilon, std::fabs(g));
      w -= rate * m / u;
    }
  };

  static constexpr int kStates = Element::kStates;
  static RuleConfig Defaults() {
    return {.name = "adamax", .learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
  }
  static Adamax From(const RuleConfig& c) {
    return {c.beta1, static_cast<float>(c.beta2), static_cast<float>(c.epsilon)};
  }
  Element Prepare(float lr, uint64_t updates) const {
    const double power = std::pow(beta1, static_cast<double>(updates) + 1);
    return {static_cast<float>(beta1), static_cast<float>(1 - beta1), beta2, epsilon,
            static_cast<float>(lr / (1 - power))};
  }
};

}  // namespace regatta::table
