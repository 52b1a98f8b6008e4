// A rule is an optimizer's update of weights by a gradient. Sparse tables apply it to rows (weights, then the rule's
// state), dense tables to flat arrays. docs/rules.md has every formula and default; docs/howto/add-a-rule.md says how
// to add one.
// Thread-safety: rules are constant after construction; the caller owns the memory they update.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/step.h"
#include "table/table_config.h"

namespace regatta::table {

// Rows of one push. A null row is left out.
struct RowUpdate {
  float* const* rows = nullptr;
  base::RowsView<const float> grads;  // row i belongs to rows[i]: sums over the samples
  int count = 0;
  int dim = 0;
  float samples = 1;
  float learning_rate = 0;
};

class SparseRule {
 public:
  virtual ~SparseRule() = default;
  virtual double learning_rate() const = 0;  // what the schedule starts from
  virtual int StateSize(int dim) const = 0;  // floats behind `dim` weights
  virtual void InitState(int dim, float* state) const = 0;
  virtual void Apply(const RowUpdate& update) const = 0;
};

// A contiguous range of dense parameters.
struct FlatUpdate {
  float* weights = nullptr;
  float* const* states = nullptr;  // state_count() arrays
  const float* grads = nullptr;    // sums over the samples
  int64_t count = 0;
  float samples = 1;
  float learning_rate = 0;
  uint64_t updates = 0;  // of this table before this one
};

class DenseRule {
 public:
  virtual ~DenseRule() = default;
  virtual double learning_rate() const = 0;
  virtual int state_count() const = 0;  // all start from 0
  virtual void Apply(const FlatUpdate& update) const = 0;
};

// The rules that rows and dense parameters can have, by name: what a configuration may choose.
std::vector<std::string_view> SparseRuleNames();
std::vector<std::string_view> DenseRuleNames();

// INVALID_ARGUMENT if the rule cannot take the rate of a commit: ftrl divides by it.
absl::Status CheckRateOf(const RuleConfig& config, std::optional<float> rate);

// INVALID_ARGUMENT names the setting that cannot be, or all rules when there is none of that name.
absl::StatusOr<std::unique_ptr<SparseRule>> MakeSparseRule(const RuleConfig& config);
absl::StatusOr<std::unique_ptr<DenseRule>> MakeDenseRule(const RuleConfig& config);

}  // namespace regatta::table
