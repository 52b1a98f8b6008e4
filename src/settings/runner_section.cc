#include "settings/runner_section.h"

#include <sched.h>

#include <filesystem>

#include "base/yaml.h"
#include "settings/key_table.h"

namespace regatta::settings {
namespace {

using base::Config;

int64_t Cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

base::IntRange Ints(const KeySpec& spec) {
  base::IntRange range;
  if (spec.min > -0x1p62) range.min = static_cast<int64_t>(spec.min);
  if (spec.max < 0x1p62) range.max = static_cast<int64_t>(spec.max);
  return range;
}

// One overload a kind of field.
class FieldReader {
 public:
  FieldReader(Config& config, const KeySpec& spec, std::string path, RunnerOptions& options)
      : config_(config), spec_(spec), path_(std::move(path)), options_(options) {}

  absl::Status operator()(std::monostate) { return absl::OkStatus(); }
  absl::Status operator()(bool RunnerOptions::*field) {
    ASSIGN_OR_RETURN(options_.*field, config_.Bool(path_, options_.*field));
    return absl::OkStatus();
  }
  absl::Status operator()(int64_t RunnerOptions::*field) {
    ASSIGN_OR_RETURN(options_.*field, spec_.type == KeyType::kBytes ? config_.Bytes(path_, options_.*field, Ints(spec_))
                                                                    : config_.Int(path_, options_.*field, Ints(spec_)));
    return absl::OkStatus();
  }
  absl::Status operator()(double RunnerOptions::*field) {
    ASSIGN_OR_RETURN(options_.*field, config_.Double(path_, options_.*field, {spec_.min, spec_.max}));
    return absl::OkStatus();
  }
  absl::Status operator()(std::string RunnerOptions::*field) {
    ASSIGN_OR_RETURN(options_.*field, config_.String(path_, options_.*field));
    if (spec_.type == KeyType::kPath) {
      options_.*field = ResolvePath(config_.folder(), options_.*field);
      config_.Record(path_, base::QuoteJson(options_.*field));
    }
    return absl::OkStatus();
  }
  absl::Status operator()(std::vector<std::string> RunnerOptions::*field) {
    ASSIGN_OR_RETURN(options_.*field, config_.StringList(path_, options_.*field));
    return absl::OkStatus();
  }
  absl::Status operator()(const ChoiceField& field) {
    ASSIGN_OR_RETURN(const std::string chosen,
                     config_.Choice(path_, spec_.choices[field.get(options_)], spec_.choices));
    for (size_t i = 0; i < spec_.choices.size(); ++i)
      if (spec_.choices[i] == chosen) {
        if (i >= field.available) return config_.ErrorAt(path_, "it is not available in this version; remove the key");
        field.set(options_, i);
      }
    return absl::OkStatus();
  }

 private:
  Config& config_;
  const KeySpec& spec_;
  const std::string path_;
  RunnerOptions& options_;
};

// Whether the value of a refused key asks for what is refused.
absl::StatusOr<bool> Asks(Config& config, const KeySpec& spec, const std::string& path) {
  if (spec.type == KeyType::kBool) return config.Bool(path, false);
  ASSIGN_OR_RETURN(const std::string text, config.String(path, ""));
  return !text.empty();
}

// A switch that is off asks for nothing, so that its lack of effect is no news.
bool IsOff(const KeySpec& spec, const RunnerOptions& options) {
  const auto* field = std::get_if<bool RunnerOptions::*>(&spec.field);
  return field != nullptr && !(options.*(*field));
}

absl::Status ReadKey(Config& config, const KeySpec& spec, Deployment deployment, RunnerOptions& options,
                     Remarks& remarks) {
  const std::string path = absl::StrCat("runner.", base::View(spec.path));
  const bool set = config.Has(path);
  RETURN_IF_ERROR(std::visit(FieldReader(config, spec, path, options), spec.field));
  if (!set) return absl::OkStatus();
  switch (spec.kind) {
    case KeyKind::kUsed:
      break;
    case KeyKind::kWithServers:
      if (deployment == Deployment::kWithServers || IsOff(spec, options)) break;
      config.Ignore(path);
      remarks.warnings.push_back(absl::StrCat(config.OriginOf(path).ToString(), ": ", path,
                                              " has no effect: it is for workers with servers, and this process trains "
                                              "alone"));
      break;
    case KeyKind::kNoEffect:
      if (IsOff(spec, options)) break;
      config.Ignore(path);
      remarks.warnings.push_back(
          absl::StrCat(config.OriginOf(path).ToString(), ": ", path, " has no effect: ", base::View(spec.doc)));
      break;
    case KeyKind::kRefused: {
      ASSIGN_OR_RETURN(const bool asks, Asks(config, spec, path));
      if (asks) return config.ErrorAt(path, spec.doc);
      break;
    }
  }
  return absl::OkStatus();
}

// Defaults that follow from other keys.
void FillDefaults(Config& config, RunnerOptions& options) {
  if (options.thread_num == 0) {
    options.thread_num = Cores();
    config.Record("runner.thread_num", std::to_string(options.thread_num));
  }
  if (!config.Has("runner.infer_batch_size")) {
    options.infer_batch_size = options.train_batch_size;
    config.Record("runner.infer_batch_size", std::to_string(options.infer_batch_size));
  }
  if (options.infer_reader_path.empty()) {
    options.infer_reader_path = options.train_reader_path;
    config.Record("runner.infer_reader_path", base::QuoteJson(options.infer_reader_path));
  }
  if (options.infer_load_path.empty()) {
    options.infer_load_path = options.model_save_path;
    config.Record("runner.infer_load_path", base::QuoteJson(options.infer_load_path));
  }
  if (!config.Has("runner.infer_end_epoch")) {
    options.infer_end_epoch = options.epochs;
    config.Record("runner.infer_end_epoch", std::to_string(options.infer_end_epoch));
  }
}

absl::Status CheckMode(const Config& config, Deployment deployment, const RunnerOptions& options, Remarks& remarks) {
  if (!base::TraitsOf(options.sync_mode).short_rows && options.row_precision != RowPrecision::kFloat32) {
    return config.ErrorAt("runner.row_precision",
                          absl::StrCat(base::Name(options.sync_mode),
                                       " exchanges differences, which are added exactly: want float32, or another "
                                       "sync_mode"));
  }
  const bool mode_set = config.Has("runner.sync_mode");
  if (options.use_fleet && !mode_set) {
    return config.ErrorAt("runner.use_fleet",
                          "without runner.sync_mode it asks for collective training, which is not available in this "
                          "version; set it to False to train in one process");
  }
  if (mode_set && deployment == Deployment::kStandalone) {
    remarks.notes.push_back(
        absl::StrCat(config.OriginOf("runner.sync_mode").ToString(),
                     ": runner.sync_mode is for workers and servers; without a role in the environment this process "
                     "trains alone"));
  }
  return absl::OkStatus();
}

absl::Status CheckRules(const Config& config, const RunnerOptions& options) {
  if (options.model_save_path.empty()) return config.ErrorAt("runner.model_save_path", "want a folder to save to");
  if (config.Has("runner.infer_end_epoch") && options.infer_end_epoch < options.infer_start_epoch) {
    return config.ErrorAt("runner.infer_end_epoch",
                          absl::StrCat("want at least runner.infer_start_epoch, which is ", options.infer_start_epoch));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ResolvePath(const std::string& folder, const std::string& path) {
  if (path.empty()) return "";
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

absl::StatusOr<RunnerOptions> ParseRunnerOptions(Config& config, Deployment deployment, Remarks& remarks) {
  RunnerOptions options;
  for (const KeySpec& spec : KeyTable()) RETURN_IF_ERROR(ReadKey(config, spec, deployment, options, remarks));
  FillDefaults(config, options);
  if (config.Has("runner.file_split")) options.split_file_list = true;
  RETURN_IF_ERROR(CheckMode(config, deployment, options, remarks));
  RETURN_IF_ERROR(CheckRules(config, options));
  return options;
}

}  // namespace regatta::settings
