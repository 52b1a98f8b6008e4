#include "settings/optimizer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "table/rule/rule.h"

namespace regatta::settings {
namespace {

using base::Config;
using std::string_view;

// Upstream's names of optimizer.class and the rules they stand for; beside them every dense rule has its own.
struct ClassEntry {
  string_view name;
  string_view sparse;
  string_view dense;
};
constexpr ClassEntry kClasses[] = {
    {"Adam", "adam", "adam"},
    {"SGD", "sgd", "sgd"},
    {"Adagrad", "adagrad_v2", "adagrad"},
    {"Momentum", "momentum", "momentum"},
    {"RMSProp", "rmsprop", "rmsprop"},
    {"Ftrl", "ftrl", "ftrl"},
};

// A setting of the rules; -1 = the rule's default.
struct OptimizerSetting {
  string_view name;
  double table::RuleConfig::*field;
  double max;
};
constexpr OptimizerSetting kOptimizerSettings[] = {
    {"beta1", &table::RuleConfig::beta1, 1},       {"beta2", &table::RuleConfig::beta2, 1},
    {"epsilon", &table::RuleConfig::epsilon, 1},   {"momentum", &table::RuleConfig::momentum, 1},
    {"rho", &table::RuleConfig::rho, 1},           {"alpha", &table::RuleConfig::alpha, 1e6},
    {"beta", &table::RuleConfig::beta, 1e6},       {"lambda1", &table::RuleConfig::lambda1, 1e6},
    {"lambda2", &table::RuleConfig::lambda2, 1e6},
};

constexpr string_view kSection = "hyper_parameters.optimizer";
constexpr string_view kScheduleNames[] = {"constant",   "exponential", "natural_exp", "inverse_time",
                                          "polynomial", "piecewise",   "noam",        "cosine"};

constexpr KeyDoc kOptimizerDocs[] = {
    {"hyper_parameters.optimizer.class", "Adam, SGD, Adagrad, Momentum, RMSProp, Ftrl, or a dense rule", "Adam",
     "the rule of dense parameters and of every sparse table (Adagrad: adagrad_v2; SGD: without bounds), or the name "
     "of another dense rule of docs/rules.md; where that has no sparse form, table_parameters gives the tables theirs"},
    {"hyper_parameters.optimizer.learning_rate", "number", "0.001", "learning rate of both"},
    {"hyper_parameters.optimizer.beta1", "number", "the rule's", "Adam"},
    {"hyper_parameters.optimizer.beta2", "number", "the rule's", "Adam"},
    {"hyper_parameters.optimizer.epsilon", "number", "the rule's", "Adam, Adagrad, RMSProp"},
    {"hyper_parameters.optimizer.momentum", "number", "the rule's", "Momentum, RMSProp"},
    {"hyper_parameters.optimizer.rho", "number", "the rule's", "RMSProp"},
    {"hyper_parameters.optimizer.alpha", "number", "the rule's", "Ftrl"},
    {"hyper_parameters.optimizer.beta", "number", "the rule's", "Ftrl"},
    {"hyper_parameters.optimizer.lambda1", "number", "the rule's", "Ftrl"},
    {"hyper_parameters.optimizer.lambda2", "number", "the rule's", "Ftrl"},
    {"hyper_parameters.optimizer.nesterov", "True/False", "False", "Momentum looks ahead"},
    {"hyper_parameters.optimizer.centered", "True/False", "False", "RMSProp subtracts the mean gradient"},
    {"hyper_parameters.clip_by_norm", "number", "0", "bound on the dense gradient's global norm; 0 = none"},
    {"hyper_parameters.optimizer.lr_schedule.name",
     "constant, exponential, natural_exp, inverse_time, polynomial, piecewise, noam, cosine", "constant",
     "how the learning rate changes from step to step"},
    {"hyper_parameters.optimizer.lr_schedule.decay_steps", "number", "0",
     "exponential, natural_exp, inverse_time, polynomial, cosine"},
    {"hyper_parameters.optimizer.lr_schedule.decay_rate", "number", "0", "exponential, natural_exp, inverse_time"},
    {"hyper_parameters.optimizer.lr_schedule.staircase", "True/False", "False", "decay in whole decay_steps"},
    {"hyper_parameters.optimizer.lr_schedule.end_learning_rate", "number", "0", "polynomial"},
    {"hyper_parameters.optimizer.lr_schedule.power", "number", "1", "polynomial"},
    {"hyper_parameters.optimizer.lr_schedule.boundaries", "list of numbers", "[]", "piecewise: ascending steps"},
    {"hyper_parameters.optimizer.lr_schedule.values", "list of numbers", "[]",
     "piecewise: learning rates, one more than boundaries, of the dense parameters and of every table"},
    {"hyper_parameters.optimizer.lr_schedule.d_model", "number", "0", "noam"},
    {"hyper_parameters.optimizer.lr_schedule.warmup_steps", "number", "0", "steps of linear warm-up; noam needs it"},
};

std::string At(string_view name) { return absl::StrCat(base::View(kSection), ".", base::View(name)); }

bool Among(const std::vector<string_view>& names, string_view name) {
  return std::any_of(names.begin(), names.end(),
                     [&](string_view other) { return absl::EqualsIgnoreCase(base::View(other), base::View(name)); });
}

// The spelling of the table of classes or of the rules. A class goes before the rule that is written alike.
absl::StatusOr<std::string> ReadClass(Config& config) {
  std::vector<string_view> names;
  for (const ClassEntry& entry : kClasses) names.push_back(entry.name);
  for (const string_view rule : table::DenseRuleNames())
    if (!Among(names, rule)) names.push_back(rule);
  ASSIGN_OR_RETURN(const std::string found, config.String(At("class"), "Adam"));
  if (!Among(names, found) && Among(table::SparseRuleNames(), found)) {
    return config.ErrorAt(At("class"), absl::StrCat(found,
                                                    " is a rule of sparse tables only; name it in "
                                                    "table_parameters.<table>.embedx_sgd_param.name and choose another "
                                                    "class for the dense parameters"));
  }
  return config.Choice(At("class"), "Adam", names);
}

absl::Status ReadRules(Config& config, OptimizerOptions& options) {
  ASSIGN_OR_RETURN(const std::string name, ReadClass(config));
  options.sparse.name = options.dense.name = name;
  for (const ClassEntry& entry : kClasses) {
    if (entry.name != name) continue;
    options.sparse.name = std::string(entry.sparse);
    options.dense.name = std::string(entry.dense);
  }
  if (name == "SGD") options.sparse.bound = 0;
  ASSIGN_OR_RETURN(const double rate, config.Double(At("learning_rate"), 0.001, {0, 1e6}));
  options.sparse.learning_rate = options.dense.learning_rate = rate;
  for (const OptimizerSetting& setting : kOptimizerSettings) {
    if (!config.Has(At(setting.name))) continue;
    ASSIGN_OR_RETURN(const double value, config.Double(At(setting.name), -1, {0, setting.max}));
    options.sparse.*setting.field = options.dense.*setting.field = value;
  }
  ASSIGN_OR_RETURN(const bool nesterov, config.Bool(At("nesterov"), false));
  ASSIGN_OR_RETURN(const bool centered, config.Bool(At("centered"), false));
  options.sparse.nesterov = options.dense.nesterov = nesterov;
  options.sparse.centered = options.dense.centered = centered;
  return absl::OkStatus();
}

// Needs `field` of the schedule to be above 0.
absl::Status Need(const Config& config, const table::ScheduleConfig& schedule, double value, string_view field) {
  if (value > 0) return absl::OkStatus();
  const std::string path = absl::StrCat(At("lr_schedule."), base::View(field));
  return config.ErrorAt(
      config.Has(path) ? path : At("lr_schedule.name"),
      absl::StrCat("the ", schedule.name, " schedule wants lr_schedule.", base::View(field), " above 0"));
}

absl::Status CheckPiecewise(const Config& config, const table::ScheduleConfig& schedule) {
  if (schedule.values.size() != schedule.boundaries.size() + 1 || schedule.boundaries.empty()) {
    return config.ErrorAt(At("lr_schedule.name"),
                          absl::StrCat("the piecewise schedule wants values one more than boundaries, found ",
                                       schedule.values.size(), " and ", schedule.boundaries.size()));
  }
  if (!std::is_sorted(schedule.boundaries.begin(), schedule.boundaries.end()))
    return config.ErrorAt(At("lr_schedule.boundaries"), "want steps in ascending order");
  return absl::OkStatus();
}

absl::Status CheckSchedule(const Config& config, const table::ScheduleConfig& schedule) {
  const string_view name = schedule.name;
  if (name == "piecewise") return CheckPiecewise(config, schedule);
  if (name == "noam") {
    RETURN_IF_ERROR(Need(config, schedule, schedule.d_model, "d_model"));
    return Need(config, schedule, schedule.warmup_steps, "warmup_steps");
  }
  if (name == "constant") return absl::OkStatus();
  RETURN_IF_ERROR(Need(config, schedule, schedule.decay_steps, "decay_steps"));
  if (name == "exponential" || name == "natural_exp" || name == "inverse_time")
    return Need(config, schedule, schedule.decay_rate, "decay_rate");
  return absl::OkStatus();
}

absl::Status ReadSchedule(Config& config, table::ScheduleConfig& schedule) {
  const auto at = [](string_view name) { return absl::StrCat(At("lr_schedule."), base::View(name)); };
  constexpr base::DoubleRange kPositive{0, 1e15};
  ASSIGN_OR_RETURN(schedule.name, config.Choice(at("name"), schedule.name, kScheduleNames));
  ASSIGN_OR_RETURN(schedule.decay_steps, config.Double(at("decay_steps"), schedule.decay_steps, kPositive));
  ASSIGN_OR_RETURN(schedule.decay_rate, config.Double(at("decay_rate"), schedule.decay_rate, kPositive));
  ASSIGN_OR_RETURN(schedule.staircase, config.Bool(at("staircase"), schedule.staircase));
  ASSIGN_OR_RETURN(schedule.end_learning_rate,
                   config.Double(at("end_learning_rate"), schedule.end_learning_rate, kPositive));
  ASSIGN_OR_RETURN(schedule.power, config.Double(at("power"), schedule.power, {0, 1e3}));
  ASSIGN_OR_RETURN(schedule.boundaries, config.DoubleList(at("boundaries"), schedule.boundaries, kPositive));
  ASSIGN_OR_RETURN(schedule.values, config.DoubleList(at("values"), schedule.values, kPositive));
  ASSIGN_OR_RETURN(schedule.d_model, config.Double(at("d_model"), schedule.d_model, kPositive));
  ASSIGN_OR_RETURN(schedule.warmup_steps, config.Double(at("warmup_steps"), schedule.warmup_steps, kPositive));
  return CheckSchedule(config, schedule);
}

}  // namespace

std::span<const KeyDoc> OptimizerKeys() { return kOptimizerDocs; }

absl::StatusOr<OptimizerOptions> ParseOptimizer(Config& config, Remarks& remarks) {
  OptimizerOptions options;
  RETURN_IF_ERROR(ReadRules(config, options));
  RETURN_IF_ERROR(ReadSchedule(config, options.schedule));
  ASSIGN_OR_RETURN(options.clip_by_norm, config.Double("hyper_parameters.clip_by_norm", 0, {0, 1e9}));
  if (config.Ignore(At("strategy"))) {
    remarks.warnings.push_back(absl::StrCat(config.OriginOf(At("strategy")).ToString(), ": ", At("strategy"),
                                            " has no effect: runner.sync_mode says how workers keep in step"));
  }
  return options;
}

}  // namespace regatta::settings
