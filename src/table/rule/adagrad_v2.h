// g2 += g²; w −= lr·g/(√g2 + ε). What YAML and Fluid call Adagrad; the dense "adagrad".
#pragma once

#include <cmath>

#include "table/table_config.h"

namespace regatta::table {

struct AdagradV2 {
  float epsilon;

  static constexpr int kStates = 1;
  static RuleConfig Defaults() { return {.name = "adagrad_v2", .learning_rate = 0.05, .epsilon = 1e-6}; }
  static AdagradV2 From(const RuleConfig& c) { return {static_cast<float>(c.epsilon)}; }
  void operator()(float lr, float g, float& w, float& g2) const {
    g2 += g * g;
    w -= lr * g / (std::sqrt(g2) + epsilon);
  }
};

}  // namespace regatta::table
