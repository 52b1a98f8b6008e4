#include "settings/run_config.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/yaml.h"
#include "model/names.h"
#include "settings/key_table.h"
#include "settings/runner_section.h"
#include "settings/table_parameters.h"

namespace regatta::settings {
namespace {

using base::Config;
using std::string_view;

// Folders of PaddleRec whose model has another name here.
constexpr struct {
  string_view folder;
  string_view model;
} kAliases[] = {
    {"logistic_regression", "lr"},
};

// Keys of hyper_parameters that upstream configurations carry whether or not the model reads them.
constexpr struct {
  string_view name;
  string_view why;
} kIdleHyperParameters[] = {
    {"distributed_embedding", "embeddings are always held in tables"},
    {"is_sparse", "embeddings are always sparse"},
    {"sparse_feature_number", "ids are full 64-bit keys, so no bound on them is needed"},
    {"sparse_inputs_slots", "this model does not read it"},
    {"sparse_feature_dim", "this model does not read it"},
    {"dense_input_dim", "this model does not read it"},
    {"fc_sizes", "this model does not read it"},
};

absl::StatusOr<std::string> ModelName(Config& config) {
  const std::string folder = std::filesystem::path(config.folder()).filename().string();
  ASSIGN_OR_RETURN(std::string name, config.String("model", folder));
  for (const auto& alias : kAliases)
    if (name == alias.folder) name = std::string(alias.model);
  if (name.empty()) {
    return config.ErrorAt("model", "no model; write 'model: dnn' or put the file in a folder named after the model");
  }
  config.Record("model", base::QuoteJson(name));
  if (const absl::Status known = model::CheckModelName(name); !known.ok())
    return config.ErrorAt("model", std::string(known.message()));
  return name;
}

}  // namespace

absl::StatusOr<Config> LoadConfig(const std::string& file, std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(Config config, Config::Load(file));
  for (const std::string& assignment : overrides) RETURN_IF_ERROR(config.Override(assignment));
  return config;
}

absl::StatusOr<RunConfig> ParseRunConfig(Config& config, Deployment deployment, Remarks& remarks) {
  RunConfig run;
  ASSIGN_OR_RETURN(run.model, ModelName(config));
  ASSIGN_OR_RETURN(run.runner, ParseRunnerOptions(config, deployment, remarks));
  ASSIGN_OR_RETURN(run.optimizer, ParseOptimizer(config, remarks));
  return run;
}

absl::Status CheckNoUnknown(Config& config, Remarks& remarks) {
  std::vector<std::string> read;
  for (const base::ConfigUse& use : config.Effective()) read.push_back(use.path);
  for (const auto& idle : kIdleHyperParameters) {
    const std::string path = absl::StrCat("hyper_parameters.", base::View(idle.name));
    if (std::binary_search(read.begin(), read.end(), path)) continue;
    if (!config.Ignore(path)) continue;
    remarks.warnings.push_back(
        absl::StrCat(config.OriginOf(path).ToString(), ": ", path, " has no effect: ", base::View(idle.why)));
  }
  std::vector<std::string> known;
  for (const KeySpec& spec : KeyTable()) known.push_back(absl::StrCat("runner.", base::View(spec.path)));
  for (const KeyDoc& doc : OptimizerKeys()) known.emplace_back(doc.path);
  for (const auto& idle : kIdleHyperParameters)
    known.push_back(absl::StrCat("hyper_parameters.", base::View(idle.name)));
  return config.CheckAllRead(known);
}

absl::Status CheckNoUnknownButOfModels(Config& config) {
  for (const std::string& name : config.Children("hyper_parameters"))
    if (name != "optimizer") config.Ignore(absl::StrCat("hyper_parameters.", name));
  config.Ignore("table_parameters");
  Remarks remarks;  // the worker's to say
  return CheckNoUnknown(config, remarks);
}

absl::Status CheckDataIsNamed(const RunnerOptions& runner, const TrainArgs& args) {
  if (args.verb == Verb::kConfig) return absl::OkStatus();
  const bool train = args.verb == Verb::kTrain || args.dry_run;
  if (!(train ? runner.train_data_dir : runner.test_data_dir).empty()) return absl::OkStatus();
  const char* const key = train ? kTrainData : kTestData;
  return absl::InvalidArgumentError(absl::StrCat(key, " is not set: name the data in ", args.config, " or with -o ",
                                                 key, "=FILE, a folder or a glob"));
}

std::string ConfigText(const Config& config) {
  const std::vector<base::ConfigUse> uses = config.Effective();
  size_t width = 0;
  for (const base::ConfigUse& use : uses)
    width = std::max(width, std::min<size_t>(60, use.path.size() + use.json.size() + 3));
  std::string out;
  for (const base::ConfigUse& use : uses) {
    const std::string value = absl::StrCat(use.path, " = ", use.json);
    absl::StrAppendFormat(&out, "%-*s  (%s%s)\n", static_cast<int>(width), value, use.origin.ToString(),
                          use.effect == base::ConfigUse::Effect::kNone ? ", no effect" : "");
  }
  return out;
}

std::string ConfigJson(const Config& config) {
  std::string out = "{";
  for (const base::ConfigUse& use : config.Effective()) {
    absl::StrAppend(&out, out.size() > 1 ? ",\n " : "\n ", base::QuoteJson(use.path), ": {\"value\": ", use.json,
                    ", \"origin\": ", base::QuoteJson(use.origin.ToString()),
                    ", \"effect\": ", use.effect == base::ConfigUse::Effect::kNone ? "false" : "true", "}");
  }
  return out + "\n}\n";
}

}  // namespace regatta::settings
