// An optimizer of Fluid: it adds to a program what trains it.
//   ASSIGN_OR_RETURN(Optimizer sgd, Optimizer::Make({.type = "SGD", .learning_rate = 0.001}));
//   ASSIGN_OR_RETURN(Minimized made, sgd.Minimize(builder, loss));
// The programs that it trains must outlive it.
// Thread-safety: as ProgramBuilder. Errors of a builder begin with its call site.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "program/backward.h"
#include "program/optimizers/optimizer_table.h"

namespace regatta::program {

struct OptimizerOptions {
  std::string type = {};  // a name of optimizer_table.h
  // A constant, or the variable that a schedule writes (schedule.h).
  std::variant<double, Variable*> learning_rate = 0.001;
  Attributes arguments = {};  // beta1, momentum, …: the keywords of the row
  std::optional<Regularizer> regularizer = std::nullopt;
  std::optional<GradientClip> gradient_clip = std::nullopt;
  std::string name = {};  // stands in the accumulators' names
};

struct Minimized {
  std::vector<Operation*> operations;  // of the updates
  std::vector<ParameterGradient> gradients;
};

class Optimizer {
 public:
  // INVALID_ARGUMENT names an unknown type or argument, or one that is missing.
  static absl::StatusOr<Optimizer> Make(OptimizerOptions options);

  // Backward pass, clip, regularizers and updates. `parameters` and `no_gradient` as in AppendBackward.
  absl::StatusOr<Minimized> Minimize(ProgramBuilder& builder, Variable* loss,
                                     const std::vector<std::string>& parameters = {}, const NameSet& no_gradient = {});

  // All but the backward pass; parameters are updated in the order of their names, those without a gradient are not.
  absl::StatusOr<Minimized> ApplyGradients(ProgramBuilder& builder, std::vector<ParameterGradient> gradients);

  // The variable that holds the learning rate in a program; nullptr before its first update.
  Variable* learning_rate(const Program& main) const {
    const auto found = learning_rates_.find(&main);
    return found == learning_rates_.end() ? nullptr : found->second;
  }
  const OptimizerRow& row() const { return *row_; }

 private:
  Optimizer(const OptimizerRow* row, OptimizerOptions options) : row_(row), options_(std::move(options)) {}

  double Argument(std::string_view keyword) const;
  absl::StatusOr<Variable*> CreateLearningRate(ProgramBuilder& builder);
  absl::StatusOr<Variable*> RateOf(ProgramBuilder& builder, const Variable& parameter);
  absl::Status CreateAccumulators(ProgramBuilder& builder, const Variable& parameter);
  absl::StatusOr<Operation*> AppendUpdate(ProgramBuilder& builder, const ParameterGradient& each);
  absl::Status AdvanceAccumulators(ProgramBuilder& builder, const ParameterGradient& each);

  const OptimizerRow* row_;
  OptimizerOptions options_;
  std::map<const Program*, Variable*> learning_rates_;
  std::map<const Variable*, std::vector<Variable*>> accumulators_;  // by parameter; in the row's order
};

}  // namespace regatta::program
