// w −= lr·g·√(g0/(g0 + g2)), then g2 += g², each element for itself.
#pragma once

#include <cmath>

#include "table/table_config.h"

namespace regatta::table {

struct StdAdagrad {
  float g0;

  static constexpr int kStates = 1;
  static RuleConfig Defaults() { return {.name = "std_adagrad", .learning_rate = 0.05, .initial_g2sum = 3}; }
  static StdAdagrad From(const RuleConfig& c) { return {static_cast<float>(c.initial_g2sum)}; }
  void operator()(float lr, float g, float& w, float& g2) const {
    w -= lr * g * std::sqrt(g0 / (g0 + g2));
    g2 += g * g;
  }
};

}  // namespace regatta::table
