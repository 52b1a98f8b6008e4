// What a table is: the schema that the composition root makes of a model's declarations, that checkpoints record and
// servers agree on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id_space.h"

namespace regatta::table {

// An optimizer and its settings. A negative number means "the rule's default" (docs/rules.md).
struct RuleConfig {
  std::string name = "adam";
  double learning_rate = -1;
  double initial_g2sum = -1;  // adagrad, std_adagrad
  double beta1 = -1;          // adam, shared_adam
  double beta2 = -1;
  double epsilon = -1;
  double momentum = -1;  // momentum, rmsprop
  double rho = -1;       // rmsprop, decayed_adagrad
  double alpha = -1;     // ftrl
  double beta = -1;
  double lambda1 = -1;
  double lambda2 = -1;
  double bound = -1;  // |w| stays below it; 0 = no bound
  bool nesterov = false;
  bool centered = false;
  friend bool operator==(const RuleConfig&, const RuleConfig&) = default;
};

// The learning rate of a step is rule.learning_rate × Factor(step).
struct ScheduleConfig {
  std::string name = "constant";  // exponential, natural_exp, inverse_time, polynomial, piecewise, noam, cosine
  double decay_steps = 0;
  double decay_rate = 0;
  bool staircase = false;
  double end_learning_rate = 0;         // polynomial
  double power = 1;                     // polynomial
  std::vector<double> boundaries = {};  // piecewise
  std::vector<double> values = {};      // piecewise: learning rates, one more than boundaries
  double d_model = 0;                   // noam
  double warmup_steps = 0;
  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

struct InitializerConfig {
  std::string name =
      "uniform";  // zeros, constant, uniform (a..b), normal (mean a, std b), xavier_uniform, xavier_normal
  double a = -1e-4;
  double b = 1e-4;
  friend bool operator==(const InitializerConfig&, const InitializerConfig&) = default;
};

struct SparseTableConfig {
  std::string name;
  int dim = 0;
  std::string accessor = "plain";
  RuleConfig rule;
  ScheduleConfig schedule;
  InitializerConfig init;
  uint64_t seed = 0;
  base::IdSpace id_space = base::IdSpace::kShared;  // what keys mean (runner.id_space); the table does not use it
  bool weights_only = false;                        // loaded and read, never trained: it takes less memory. Not saved
  friend bool operator==(const SparseTableConfig&, const SparseTableConfig&) = default;
};

struct DenseParameterConfig {
  std::string name;
  std::vector<int64_t> shape;
  InitializerConfig init;
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  friend bool operator==(const DenseParameterConfig&, const DenseParameterConfig&) = default;
};

struct DenseTableConfig {
  std::string name = "dense";
  std::vector<DenseParameterConfig> parameters;
  RuleConfig rule;
  ScheduleConfig schedule;
  uint64_t seed = 0;
  friend bool operator==(const DenseTableConfig&, const DenseTableConfig&) = default;
};

// All tables of a model. Sparse tables are known by their index, the dense parameters are one table.
struct ModelConfig {
  std::vector<SparseTableConfig> sparse;
  DenseTableConfig dense;
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;

  // The same weights without a state of the optimizer, for who only reads them: Adam keeps two more floats a weight.
  ModelConfig WeightsOnly() const {
    ModelConfig config = *this;
    for (SparseTableConfig& table : config.sparse) {
      table.rule = {.name = "sgd"};
      table.schedule = {};
      table.weights_only = true;
    }
    config.dense.rule = {.name = "sgd"};
    config.dense.schedule = {};
    return config;
  }
};

}  // namespace regatta::table
