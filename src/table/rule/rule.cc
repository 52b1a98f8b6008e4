#include "table/rule/rule.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/multiversion.h"
#include "table/rule/adagrad.h"
#include "table/rule/adagrad_v2.h"
#include "table/rule/adam.h"
#include "table/rule/adam_d2sum.h"
#include "table/rule/adamax.h"
#include "table/rule/decayed_adagrad.h"
#include "table/rule/element.h"
#include "table/rule/ftrl.h"
#include "table/rule/momentum.h"
#include "table/rule/rmsprop.h"
#include "table/rule/sgd.h"
#include "table/rule/shared_adam.h"
#include "table/rule/std_adagrad.h"

namespace regatta::table {
namespace {

template <typename Rule>
REGATTA_MULTIVERSION void ApplyRows(const Rule& rule, float bound, const RowUpdate& u) {
  const UpdateScale scale{u.learning_rate, u.samples, bound};
  for (int i = 0; i < u.count; ++i) {
    float* row = u.rows[i];
    if (row != nullptr) rule.UpdateRow(scale, u.dim, u.grads.row(i), row, row + u.dim);
  }
}

template <typename Math>
REGATTA_MULTIVERSION void ApplyFlat(const Math& math, float bound, const FlatUpdate& u) {
  UpdateElements(math, UpdateScale{u.learning_rate, u.samples, bound}, u.count, u.grads, u.weights, u.states);
}

// What the schedule starts from: a rule may have a name of its own for it.
template <typename Rule>
double BaseRate(const RuleConfig& config) {
  if constexpr (requires { Rule::LearningRate(config); }) {
    return Rule::LearningRate(config);
  } else {
    return config.learning_rate;
  }
}

template <typename Rule>
class SparseRuleOf final : public SparseRule {
 public:
  explicit SparseRuleOf(const RuleConfig& c, float bound)
      : rule_(Rule::From(c)), learning_rate_(BaseRate<Rule>(c)), bound_(bound) {}
  double learning_rate() const override { return learning_rate_; }
  int StateSize(int dim) const override { return rule_.StateSize(dim); }
  void InitState(int dim, float* state) const override { rule_.InitState(dim, state); }
  void Apply(const RowUpdate& update) const override { ApplyRows(rule_, bound_, update); }

 private:
  const Rule rule_;
  const double learning_rate_;
  const float bound_;
};

template <typename Math>
class DenseRuleOf final : public DenseRule {
 public:
  explicit DenseRuleOf(const RuleConfig& c, float bound)
      : math_(Math::From(c)), learning_rate_(BaseRate<Math>(c)), bound_(bound) {}
  double learning_rate() const override { return learning_rate_; }
  int state_count() const override { return Math::kStates; }
  void Apply(const FlatUpdate& u) const override {
    if constexpr (requires { math_.Prepare(u.learning_rate, u.updates); }) {
      ApplyFlat(math_.Prepare(u.learning_rate, u.updates), bound_, u);
    } else {
      ApplyFlat(math_, bound_, u);
    }
  }

 private:
  const Math math_;
  const double learning_rate_;
  const float bound_;
};

struct Setting {
  std::string_view name;
  double RuleConfig::*field;
  double low;         // legal from here
  double high;        // up to here
  bool open = false;  // the ends excluded
};

constexpr double kAny = std::numeric_limits<float>::max();
constexpr Setting kSettings[] = {
    {"learning_rate", &RuleConfig::learning_rate, 0, kAny},
    {"initial_g2sum", &RuleConfig::initial_g2sum, 0, kAny, true},
    {"beta1", &RuleConfig::beta1, 0, 0.9999999},
    {"beta2", &RuleConfig::beta2, 0, 0.9999999},
    {"epsilon", &RuleConfig::epsilon, 0, kAny},
    {"momentum", &RuleConfig::momentum, 0, 1},
    {"rho", &RuleConfig::rho, 0, 1},
    {"alpha", &RuleConfig::alpha, 0, kAny, true},
    {"beta", &RuleConfig::beta, 0, kAny},
    {"lambda1", &RuleConfig::lambda1, 0, kAny},
    {"lambda2", &RuleConfig::lambda2, 0, kAny},
    {"bound", &RuleConfig::bound, 0, kAny},
};

// The config with the rule's defaults where it says nothing, checked.
absl::StatusOr<RuleConfig> Resolve(RuleConfig config, const RuleConfig& defaults) {
  for (const Setting& setting : kSettings) {
    double& value = config.*setting.field;
    if (value < 0) value = defaults.*setting.field;
    const bool unused = value < 0;
    const bool inside = value >= setting.low && value <= setting.high &&
                        !(setting.open && (value == setting.low || value == setting.high));
    if (!unused && !inside) {
      return absl::InvalidArgumentError(absl::StrCat("rule ", config.name, ": ", base::View(setting.name), " = ", value,
                                                     " is not ", setting.open ? "strictly " : "", "between ",
                                                     setting.low, " and ", setting.high));
    }
  }
  return config;
}

float BoundOf(const RuleConfig& config) {
  return config.bound > 0 ? static_cast<float>(config.bound) : std::numeric_limits<float>::infinity();
}

template <typename Rule>
absl::StatusOr<std::unique_ptr<SparseRule>> Sparse(const RuleConfig& config) {
  ASSIGN_OR_RETURN(const RuleConfig resolved, Resolve(config, Rule::Defaults()));
  return std::unique_ptr<SparseRule>(new SparseRuleOf<Rule>(resolved, BoundOf(resolved)));
}

template <typename Math>
absl::StatusOr<std::unique_ptr<DenseRule>> Dense(const RuleConfig& config) {
  ASSIGN_OR_RETURN(const RuleConfig resolved, Resolve(config, Math::Defaults()));
  return std::unique_ptr<DenseRule>(new DenseRuleOf<Math>(resolved, BoundOf(resolved)));
}

// rmsprop comes in four shapes of state.
absl::StatusOr<std::unique_ptr<SparseRule>> SparseRmsprop(const RuleConfig& c) {
  if (c.momentum > 0) {
    return c.centered ? Sparse<PerElement<Rmsprop<true, true>>>(c) : Sparse<PerElement<Rmsprop<false, true>>>(c);
  }
  return c.centered ? Sparse<PerElement<Rmsprop<true, false>>>(c) : Sparse<PerElement<Rmsprop<false, false>>>(c);
}

absl::StatusOr<std::unique_ptr<DenseRule>> DenseRmsprop(const RuleConfig& c) {
  if (c.momentum > 0) return c.centered ? Dense<Rmsprop<true, true>>(c) : Dense<Rmsprop<false, true>>(c);
  return c.centered ? Dense<Rmsprop<true, false>>(c) : Dense<Rmsprop<false, false>>(c);
}

struct RuleEntry {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<SparseRule>> (*sparse)(const RuleConfig&);  // null: not for rows
  absl::StatusOr<std::unique_ptr<DenseRule>> (*dense)(const RuleConfig&);    // null: not for dense parameters
};

constexpr RuleEntry kRules[] = {
    {"naive", &Sparse<PerElement<Naive>>, nullptr},
    {"sgd", &Sparse<PerElement<Sgd>>, &Dense<Sgd>},
    {"adagrad", &Sparse<Adagrad>, &Dense<AdagradV2>},  // dense: "the usual one"
    {"std_adagrad", &Sparse<PerElement<StdAdagrad>>, nullptr},
    {"adagrad_v2", &Sparse<PerElement<AdagradV2>>, &Dense<AdagradV2>},
    {"adam", &Sparse<Adam>, &Dense<DenseAdam>},
    {"shared_adam", &Sparse<SharedAdam>, nullptr},
    {"adamax", nullptr, &Dense<Adamax>},
    {"momentum", &Sparse<PerElement<Momentum>>, &Dense<Momentum>},
    {"rmsprop", &SparseRmsprop, &DenseRmsprop},
    {"decayed_adagrad", nullptr, &Dense<DecayedAdagrad>},
    {"ftrl", &Sparse<PerElement<Ftrl>>, &Dense<Ftrl>},
    {"adam_d2sum", nullptr, &Dense<AdamD2sum>},
};

// The rules that one kind of table can have.
template <typename Factory>
std::vector<std::string_view> NamesOf(Factory RuleEntry::*kind) {
  std::vector<std::string_view> names;
  for (const RuleEntry& entry : kRules)
    if (entry.*kind != nullptr) names.push_back(entry.name);
  return names;
}

// The entry's factory for one kind of table, or an error that lists the rules of that kind.
template <typename Factory>
absl::StatusOr<Factory> FindRule(const RuleConfig& config, Factory RuleEntry::*kind, std::string_view table) {
  for (const RuleEntry& entry : kRules)
    if (entry.*kind != nullptr && entry.name == config.name) return entry.*kind;
  std::string names;
  for (const std::string_view name : NamesOf(kind))
    absl::StrAppend(&names, names.empty() ? "" : ", ", base::View(name));
  return absl::InvalidArgumentError(
      absl::StrCat("rule: there is no '", config.name, "' for a ", base::View(table), " table; use one of ", names));
}

}  // namespace

std::vector<std::string_view> SparseRuleNames() { return NamesOf(&RuleEntry::sparse); }

std::vector<std::string_view> DenseRuleNames() { return NamesOf(&RuleEntry::dense); }

absl::StatusOr<std::unique_ptr<SparseRule>> MakeSparseRule(const RuleConfig& config) {
  ASSIGN_OR_RETURN(auto make, FindRule(config, &RuleEntry::sparse, "sparse"));
  return make(config);
}

absl::StatusOr<std::unique_ptr<DenseRule>> MakeDenseRule(const RuleConfig& config) {
  ASSIGN_OR_RETURN(auto make, FindRule(config, &RuleEntry::dense, "dense"));
  return make(config);
}

absl::Status CheckRateOf(const RuleConfig& config, std::optional<float> rate) {
  if (rate != 0.0f || config.name != "ftrl") return absl::OkStatus();
  return absl::InvalidArgumentError("rule ftrl divides by the learning rate, which cannot be 0");
}

}  // namespace regatta::table
