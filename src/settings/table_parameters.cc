#include "settings/table_parameters.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "table/rule/rule.h"

namespace regatta::settings {
namespace {

using base::Config;
using std::string_view;

// Upstream's names of sparse rules; beside them every rule has its own (table/rule/rule.h).
constexpr struct {
  string_view name;
  string_view rule;
} kUpstreamRules[] = {
    {"SparseNaiveSGDRule", "sgd"}, {"SparseAdaGradSGDRule", "adagrad"},        {"StdAdaGradSGDRule", "std_adagrad"},
    {"SparseAdamSGDRule", "adam"}, {"SparseSharedAdamSGDRule", "shared_adam"},
};

// Accessors that keep weights and the rule's state only.
constexpr string_view kPlainAccessors[] = {"plain", "SparseAccessor"};
constexpr string_view kCtrAccessors[] = {"ctr",
                                         "CtrCommonAccessor",
                                         "CtrDoubleAccessor",
                                         "CtrDymfAccessor",
                                         "DownpourCtrAccessor",
                                         "DownpourCtrDoubleAccessor",
                                         "DownpourUnitAccessor"};

struct TableSetting {
  string_view name;
  double table::RuleConfig::*field;
  double max;
};
constexpr TableSetting kTableSettings[] = {
    {"learning_rate", &table::RuleConfig::learning_rate, 1e6},
    {"initial_g2sum", &table::RuleConfig::initial_g2sum, 1e9},
    {"beta1_decay_rate", &table::RuleConfig::beta1, 1},
    {"beta2_decay_rate", &table::RuleConfig::beta2, 1},
    {"ada_epsilon", &table::RuleConfig::epsilon, 1},
    {"momentum", &table::RuleConfig::momentum, 1},
    {"rho", &table::RuleConfig::rho, 1},
    {"alpha", &table::RuleConfig::alpha, 1e6},
    {"beta", &table::RuleConfig::beta, 1e6},
    {"lambda1", &table::RuleConfig::lambda1, 1e6},
    {"lambda2", &table::RuleConfig::lambda2, 1e6},
};

constexpr struct {
  string_view name;
  string_view why;
} kIdle[] = {
    {"shard_num", "every table has 1024 virtual shards"},
    {"table_class", "one kind of sparse table serves all"},
    {"type", "one kind of sparse table serves all"},
    {"enable_sparse_table_cache", "rows are not cached on the worker"},
    {"sparse_table_cache_rate", "rows are not cached on the worker"},
    {"sparse_table_cache_file_num", "rows are not cached on the worker"},
    {"compress_in_save", "saves are not compressed"},
    {"fea_dim", "the model says how wide a row is"},
    {"embedx_dim", "the model says how wide a row is"},
    {"embedx_threshold", "the plain accessor gives every key its row at the first push"},
    {"embed_sgd_param", "only the ctr accessor keeps a separate embed weight; embedx_sgd_param is the rule"},
    {"ctr_accessor_param", "only the ctr accessor counts shows and clicks"},
    {"table_accessor_save_param", "saves have one format"},
};

constexpr KeyDoc kTableDocs[] = {
    {"table_parameters.<table>.accessor_class", "text", "plain",
     "what a row holds; the ctr accessors are not available in this version"},
    {"table_parameters.<table>.embedx_sgd_param.name", "text", "by optimizer.class",
     "the table's rule: a sparse rule of docs/rules.md by its name, or upstream's SparseNaiveSGDRule, "
     "SparseAdaGradSGDRule, StdAdaGradSGDRule, SparseAdamSGDRule, SparseSharedAdamSGDRule"},
    {"table_parameters.<table>.embedx_sgd_param.learning_rate", "number", "optimizer.learning_rate", ""},
    {"table_parameters.<table>.embedx_sgd_param.initial_g2sum", "number", "the rule's", "adagrad, std_adagrad"},
    {"table_parameters.<table>.embedx_sgd_param.initial_range", "number", "the model's",
     "rows start uniform in ± this range"},
    {"table_parameters.<table>.embedx_sgd_param.weight_bounds", "list of 2 numbers", "the rule's",
     "[-b, b]: weights stay within"},
    {"table_parameters.<table>.embedx_sgd_param.beta1_decay_rate", "number", "the rule's", "adam, shared_adam"},
    {"table_parameters.<table>.embedx_sgd_param.beta2_decay_rate", "number", "the rule's", "adam, shared_adam"},
    {"table_parameters.<table>.embedx_sgd_param.ada_epsilon", "number", "the rule's", "adam, adagrad_v2"},
    {"table_parameters.<table>.embedx_sgd_param.momentum", "number", "the rule's", "momentum, rmsprop"},
    {"table_parameters.<table>.embedx_sgd_param.rho", "number", "the rule's", "rmsprop"},
    {"table_parameters.<table>.embedx_sgd_param.alpha", "number", "the rule's", "ftrl"},
    {"table_parameters.<table>.embedx_sgd_param.beta", "number", "the rule's", "ftrl"},
    {"table_parameters.<table>.embedx_sgd_param.lambda1", "number", "the rule's", "ftrl"},
    {"table_parameters.<table>.embedx_sgd_param.lambda2", "number", "the rule's", "ftrl"},
};

// The sub-section that upstream puts a rule's settings in; "" for rules that upstream has not.
string_view UpstreamSection(string_view rule) {
  if (rule == "sgd") return "naive";
  if (rule == "adagrad" || rule == "std_adagrad") return "adagrad";
  if (rule == "adam" || rule == "shared_adam") return "adam";
  return "";
}
constexpr string_view kUpstreamSections[] = {"naive", "adagrad", "adam"};

// Reads the keys of one table. A key stands directly below the table or below its accessor section.
class TableReader {
 public:
  TableReader(Config& config, string_view table, Remarks& remarks)
      : config_(config), prefix_(absl::StrCat("table_parameters.", base::View(table))), remarks_(remarks) {}

  absl::Status CheckAccessor() {
    const std::string path = PathOf("accessor_class");
    ASSIGN_OR_RETURN(const std::string name, config_.String(path, "plain"));
    for (const string_view ctr : kCtrAccessors)
      if (name == ctr) {
        return config_.ErrorAt(path,
                               "accessors that count shows and clicks are not available in this version; remove the "
                               "key to keep weights and optimizer state only");
      }
    for (const string_view plain : kPlainAccessors)
      if (name == plain) return absl::OkStatus();
    return config_.ErrorAt(path, "want plain");
  }

  absl::StatusOr<TableRule> ReadRule(const table::RuleConfig& rule) {
    TableRule out{rule, std::nullopt};
    const std::string section = PathOf("embedx_sgd_param");
    ASSIGN_OR_RETURN(const std::string name, ReadRuleName(section + ".name", rule.name));
    if (name != rule.name) {
      out.rule = table::RuleConfig{};
      out.rule.name = name;
      out.rule.learning_rate = rule.learning_rate;
    }
    const string_view own = UpstreamSection(out.rule.name);
    RETURN_IF_ERROR(ReadSettings(section, out));
    for (const string_view nested : kUpstreamSections) {
      const std::string path = absl::StrCat(section, ".", base::View(nested));
      if (nested == own) {
        RETURN_IF_ERROR(ReadSettings(path, out));
      } else if (config_.Ignore(path)) {
        Warn(path, absl::StrCat("the table's rule is ", out.rule.name));
      }
    }
    return out;
  }

  void IgnoreIdle() {
    for (const auto& idle : kIdle) {
      const std::string path = PathOf(idle.name);
      if (config_.Ignore(path)) Warn(path, idle.why);
    }
  }

 private:
  // The name of a rule that rows can have; `fallback`, which comes from optimizer.class, may be one that they cannot.
  absl::StatusOr<std::string> ReadRuleName(const std::string& path, const std::string& fallback) {
    std::vector<string_view> names = table::SparseRuleNames();
    if (!config_.Has(path) && std::find(names.begin(), names.end(), fallback) == names.end()) {
      return config_.ErrorAt("hyper_parameters.optimizer.class",
                             absl::StrCat(fallback, " is a rule of dense parameters only; give the table a rule with ",
                                          prefix_, ".embedx_sgd_param.name: ",
                                          absl::StrJoin(std::vector<std::string>(names.begin(), names.end()), ", ")));
    }
    for (const auto& upstream : kUpstreamRules) names.push_back(upstream.name);
    ASSIGN_OR_RETURN(std::string name, config_.Choice(path, fallback, names));
    for (const auto& upstream : kUpstreamRules)
      if (upstream.name == name) name = std::string(upstream.rule);
    return name;
  }

  std::string PathOf(string_view key) const {
    const std::string nested = absl::StrCat(prefix_, ".accessor.", base::View(key));
    return config_.Has(nested) ? nested : absl::StrCat(prefix_, ".", base::View(key));
  }

  void Warn(const std::string& path, string_view why) {
    remarks_.warnings.push_back(
        absl::StrCat(config_.OriginOf(path).ToString(), ": ", path, " has no effect: ", base::View(why)));
  }

  absl::Status ReadSettings(const std::string& section, TableRule& out) {
    for (const TableSetting& setting : kTableSettings) {
      const std::string path = absl::StrCat(section, ".", base::View(setting.name));
      if (!config_.Has(path)) continue;
      ASSIGN_OR_RETURN(out.rule.*setting.field, config_.Double(path, 0, {0, setting.max}));
    }
    if (const std::string path = section + ".initial_range"; config_.Has(path)) {
      ASSIGN_OR_RETURN(out.initial_range, config_.Double(path, 0, {0, 1e6}));
    }
    if (const std::string path = section + ".weight_bounds"; config_.Has(path)) {
      ASSIGN_OR_RETURN(const std::vector<double> bounds, config_.DoubleList(path, {}, {-1e9, 1e9}));
      if (bounds.size() != 2 || !(bounds[1] > 0) || bounds[0] != -bounds[1])
        return config_.ErrorAt(path, "want [-b, b] with b above 0, such as [-10, 10]");
      out.rule.bound = bounds[1];
    }
    return absl::OkStatus();
  }

  Config& config_;
  const std::string prefix_;
  Remarks& remarks_;
};

}  // namespace

std::span<const KeyDoc> TableKeys() { return kTableDocs; }

absl::StatusOr<TableRule> RuleFor(Config& config, string_view table, const table::RuleConfig& rule, Remarks& remarks) {
  TableReader reader(config, table, remarks);
  RETURN_IF_ERROR(reader.CheckAccessor());
  ASSIGN_OR_RETURN(TableRule out, reader.ReadRule(rule));
  reader.IgnoreIdle();
  return out;
}

}  // namespace regatta::settings
