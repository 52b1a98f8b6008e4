// adagrad of a row with one shared sum: w −= lr·g·√(g0/(g0 + g2)), then g2 += mean(g²).
#pragma once

#include <cmath>

#include "table/rule/element.h"
#include "table/rule/sgd.h"
#include "table/table_config.h"

namespace regatta::table {

struct Adagrad {
  float g0;

  static RuleConfig Defaults() { return {.name = "adagrad", .learning_rate = 0.05, .initial_g2sum = 3}; }
  static Adagrad From(const RuleConfig& c) { return {static_cast<float>(c.initial_g2sum)}; }
  static int StateSize(int) { return 1; }
  static void InitState(int, float* state) { *state = 0; }

  [[gnu::always_inline]] void UpdateRow(UpdateScale scale, int dim, const float* g, float* w, float* state) const {
    scale.learning_rate *= std::sqrt(g0 / (g0 + *state));
    UpdateElements(Sgd(), scale, dim, g, w, nullptr);
    *state += MeansOf(g, scale.samples, dim).square;
  }
};

}  // namespace regatta::table
