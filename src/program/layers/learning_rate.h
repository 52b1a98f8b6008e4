// Learning-rate schedules: one operation `lr_schedule` each, which computes a step's rate from a counter of steps that
// is kept with the model. Below, t is the counter (0 in the first step) and r the learning_rate. A server's schedules
// (docs/rules.md) are of the same kinds.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
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

// p = t / decay_steps, with staircase its floor.
struct DecayOptions {
  double learning_rate = 0;
  double decay_steps = 1;
  double decay_rate = 0;
  bool staircase = false;
};

// r · decay_rate^p; r · e^(−decay_rate · p); r / (1 + decay_rate · p).
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

// (r − end) · (1 − s / n)^power + end with n = decay_steps and s = min(t, n). With cycle s = t, and n is the first
// multiple of decay_steps from t on, at least decay_steps.
absl::StatusOr<Variable*> PolynomialDecay(ProgramBuilder& builder, const PolynomialDecayOptions& options);

// values[i], i = how many boundaries are <= t. The rate is the persistable variable "learning_rate".
absl::StatusOr<Variable*> PiecewiseDecay(ProgramBuilder& builder, const std::vector<double>& boundaries,
                                         const std::vector<double>& values);

// r · d_model^−0.5 · min(t^−0.5, t · warmup_steps^−1.5), t from 1 on.
absl::StatusOr<Variable*> NoamDecay(ProgramBuilder& builder, double d_model, double warmup_steps,
                                    double learning_rate = 1);

// r / 2 · (cos(floor(t / step_each_epoch) · π / epochs) + 1)
absl::StatusOr<Variable*> CosineDecay(ProgramBuilder& builder, double learning_rate, double step_each_epoch,
                                      double epochs);

// start_lr + (end_lr − start_lr) · t / warmup_steps while t < warmup_steps; then `after`: a rate, or the variable of
// another schedule. The rate is the persistable variable "learning_rate_warmup".
absl::StatusOr<Variable*> LinearWarmup(ProgramBuilder& builder, const std::variant<double, Variable*>& after,
                                       double warmup_steps, double start_lr, double end_lr);

}  // namespace regatta::program::layers
