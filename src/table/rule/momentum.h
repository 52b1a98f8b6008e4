// v = μ·v + g; w −= lr·v, or with nesterov w −= lr·(g + μ·v).
#pragma once

#include "table/table_config.h"

namespace regatta::table {

struct Momentum {
  float mu;
  float of_velocity;  // w −= lr·(of_gradient·g + of_velocity·v)
  float of_gradient;

  static constexpr int kStates = 1;
  static RuleConfig Defaults() { return {.name = "momentum", .learning_rate = 0.001, .momentum = 0.9}; }
  static Momentum From(const RuleConfig& c) {
    const float mu = static_cast<float>(c.momentum);
    return c.nesterov ? Momentum{mu, mu, 1} : Momentum{mu, 1, 0};
  }
  void operator()(float lr, float g, float& w, float& v) const {
    v = mu * v + g;
    w -= lr * (of_gradient * g + of_velocity * v);
  }
};

}  // namespace regatta::table
