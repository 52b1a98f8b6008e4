// A run's whole configuration, in the order the trainer's executable needs it:
//   Config, ParseRunConfig → the model reads base::Params(config, "hyper_parameters") → RuleFor each table →
//   CheckNoUnknown → ConfigText.
// Thread-safety: plain values; the Config belongs to one thread.
#pragma once

#include <span>
#include <string>

#include "base/config.h"
#include "base/status.h"
#include "runner/optimizer.h"
#include "runner/runner_options.h"

namespace regatta::runner {

struct RunConfig {
  std::string model;  // "dnn"
  RunnerOptions runner;
  OptimizerOptions optimizer;
};

absl::StatusOr<RunConfig> ParseRunConfig(base::Config& config, Company company, Remarks& remarks);

// The file with every "-o key=value" laid over it.
absl::StatusOr<base::Config> LoadConfig(const std::string& file, std::span<const std::string> overrides);

// After all have read: keys without effect are remarked, unknown ones are an error with the nearest name.
absl::Status CheckNoUnknown(base::Config& config, Remarks& remarks);

// One line a value: "runner.epochs = 2    (-o)".
std::string ConfigText(const base::Config& config);
// {"runner.epochs": {"value": 2, "origin": "-o", "effect": true}, …}
std::string ConfigJson(const base::Config& config);

}  // namespace regatta::runner
