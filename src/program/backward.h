// Adds the backward pass to a program: one operation `backward` that stands for all of it. The executor's autograd
// computes the gradients, and only those that are used or fetched.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "program/program_builder.h"

namespace regatta::program {

using NameSet = std::set<std::string, std::less<>>;

struct ParameterGradient {
  Variable* parameter = nullptr;
  Variable* gradient = nullptr;
};

// Declares <name>@GRAD for every variable that lies between the parameters, or data without stop_gradient, and the
// loss. No gradient goes through
// variables of `no_gradient` and those with stop_gradient. `parameters` are the names that are wanted; empty = every
// trainable one. The gradient of a table that is_sparse lookups alone read is selected rows.
// Returns the parameters that the loss depends on: first those that the program uses last.
// INVALID_ARGUMENT if the loss is not [1], or no parameter reaches it.
absl::StatusOr<std::vector<ParameterGradient>> AppendBackward(ProgramBuilder& builder, Variable* loss,
                                                              const std::vector<std::string>& parameters = {},
                                                              const NameSet& no_gradient = {});

// fluid.gradients: the gradients of the sum of `targets` (each weighted by its target gradient, if any are given) to
// `inputs`; nullptr for an input that no target depends on.
absl::StatusOr<std::vector<Variable*>> AppendGradients(ProgramBuilder& builder, const std::vector<Variable*>& targets,
                                                       const std::vector<Variable*>& inputs,
                                                       const std::vector<Variable*>& target_gradients = {},
                                                       const NameSet& no_gradient = {});

}  // namespace regatta::program
