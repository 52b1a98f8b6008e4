// w −= lr·g. As "naive" the weights stay within ±10.
#pragma once

#include "table/table_config.h"

namespace regatta::table {

struct Sgd {
  static constexpr int kStates = 0;
  static RuleConfig Defaults() { return {.name = "sgd", .learning_rate = 0.05}; }
  static Sgd From(const RuleConfig&) { return {}; }
  void operator()(float lr, float g, float& w) const { w -= lr * g; }
};

struct Naive : Sgd {
  static RuleConfig Defaults() { return {.name = "naive", .learning_rate = 0.05, .bound = 10}; }
  static Naive From(const RuleConfig&) { return {}; }
};

}  // namespace regatta::table
