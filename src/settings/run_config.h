// A run's whole configuration, in the order the trainer's executable needs it:
//   Config, ParseRunConfig → the model reads base::Params(config, "hyper_parameters") → RuleFor each table →
//   CheckNoUnknown → ConfigText.
// Thread-safety: plain values; the Config belongs to one thread.
#pragma once

#include <span>
#include <string>

#include "base/config.h"
#include "base/status.h"
#include "settings/optimizer.h"
#include "settings/runner_options.h"
#include "settings/train_args.h"

namespace regatta::settings {

// The keys of the data, for messages.
inline constexpr char kTrainData[] = "runner.train_data_dir";
inline constexpr char kTestData[] = "runner.test_data_dir";

struct RunConfig {
  std::string model;  // "dnn"
  RunnerOptions runner;
  OptimizerOptions optimizer;
};

absl::StatusOr<RunConfig> ParseRunConfig(base::Config& config, Deployment deployment, Remarks& remarks);

// The file with every "-o key=value" laid over it.
absl::StatusOr<base::Config> LoadConfig(const std::string& file, std::span<const std::string> overrides);

// After all have read: keys without effect are remarked, unknown ones are an error with the nearest name.
absl::Status CheckNoUnknown(base::Config& config, Remarks& remarks);
// The same where there is no model, after ParseRunConfig: the keys that a model or its tables may read are accepted.
absl::Status CheckNoUnknownButOfModels(base::Config& config);

// An error where the data that the verb reads is not named.
absl::Status CheckDataIsNamed(const RunnerOptions& runner, const TrainArgs& args);

// One line a value: "runner.epochs = 2    (-o)".
std::string ConfigText(const base::Config& config);
// {"runner.epochs": {"value": 2, "origin": "-o", "effect": true}, …}
std::string ConfigJson(const base::Config& config);

}  // namespace regatta::settings
