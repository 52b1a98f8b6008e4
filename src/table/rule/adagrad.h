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
    *state += MeanOfSquares(g, scale.samples, dim);
  }

 private:
  // Eight partial sums: a fixed order of additions that vectorises.
  [[gnu::always_inline]] static float MeanOfSquares(const float* g, float samples, int dim) {
    float sums[8] = {};
    int i = 0;
    for (; i + 8 <= dim; i += 8) {
      for (int j = 0; j < 8; ++j) {
        const float mean = g[i + j] / samples;
        sums[j] += mean * mean;
      }
    }
    for (int j = 0; i < dim; ++i, ++j) {
      const float mean = g[i] / samples;
      sums[j] += mean * mean;
    }
    const float sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    return sum / static_cast<float>(dim);
  }
};

}  // namespace regatta::table
