// Learning-rate schedules: one operation each, which computes a step's rate from a counter of steps that is kept with
// the model. A server's schedule (docs/rules.md) has the same kinds and settings. Thread-safety: as ProgramBuilder.
// Errors begin with the builder's call site.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "program/program_builder.h"

namespace regatta::program::layers {

inline constexpr char kDecayCounter[] = "@LR_DECAY_COUNTER@";  // of schedules
inline constexpr char kStepCounter[] = "@STEP_COUNTER@";       // of layers.autoincreased_step_counter

// The persistable int64 [1] of that name, which is `begin` in the first step and grows by `step`. One that the program
// has goes on as it was made.
absl::StatusOr<Variable*> StepCounter(ProgramBuilder& builder, const std::string& name = kDecayCounter,
                                      int64_t begin = 0, int64_t step = 1);

struct DecayOptions {
  double learning_rate = 0;
  double decay_steps = 1;
  double decay_rate = 0;
  bool staircase = false;
};

absl::StatusOr<Variable*> ExponentialDecay(ProgramBuilder& builder, const DecayOptions& options);
absl::StatusOr<Variable*> NaturalExpDecay(ProgramBuilder& builder, const DecayOptions& options);
absl::StatusOr<Variable*> InverseTimeDecay(ProgramBuilder& builder, const DecayOptions& options);

struct PolynomialDecayOptions {
  double learning_rate = 0;
  double decay_steps = 1;
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;
};

absl::StatusOr<Variable*> PolynomialDecay(ProgramBuilder& builder, const PolynomialDecayOptions& options);

// values[i], i = how many boundaries are <= the step.
absl::StatusOr<Variable*> PiecewiseDecay(ProgramBuilder& builder, const std::vector<double>& boundaries,
                                         const std::vector<double>& values);

// Counts steps from 1.
absl::StatusOr<Variable*> NoamDecay(ProgramBuilder& builder, double d_model, double warmup_steps,
                                    double learning_rate = 1);

absl::StatusOr<Variable*> CosineDecay(ProgramBuilder& builder, double learning_rate, double step_each_epoch,
                                      double epochs);

// From start_lr to end_lr in `warmup_steps` steps, then `after`: a rate, or the variable of another schedule.
absl::StatusOr<Variable*> LinearWarmup(ProgramBuilder& builder, const std::variant<double, Variable*>& after,
                                       double warmup_steps, double start_lr, double end_lr);

}  // namespace regatta::program::layers
