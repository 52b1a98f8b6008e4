#include "program/layers/learning_rate.h"

#include "program/append.h"

namespace regatta::program::layers {

namespace {

// Where a rate is written: a temporary variable, or a state of Fluid's name if that is free.
absl::StatusOr<Variable*> CreateRate(ProgramBuilder& builder, const std::string& state) {
  if (!state.empty() && builder.main().global_block().FindHere(state) == nullptr)
    return builder.CreateState(state, {1}, DataType::kFloat32, Initializer::Constant(0));
  ASSIGN_OR_RETURN(Variable * rate, builder.CreateVariable("tmp", DataType::kFloat32));
  rate->stop_gradient = true;
  return rate;
}

struct ScheduleOptions {
  int64_t begin = 0;          // the counter in the first step
  Variable* after = nullptr;  // the rate of another schedule
  std::string state = {};     // the name of the variable that holds the rate, if scripts know it
};

absl::StatusOr<Variable*> Schedule(ProgramBuilder& builder, const char* kind, Attributes attributes,
                                   const ScheduleOptions& options = {}) {
  for (const char* divisor : {"decay_steps", "warmup_steps", "step_each_epoch", "epochs", "d_model"}) {
    if (attributes.Find(divisor) != nullptr && !(attributes.Float(divisor) > 0))
      return builder.Error(absl::StrCat(divisor, " is ", attributes.Float(divisor), "; want more than 0"));
  }
  ASSIGN_OR_RETURN(Variable * step, StepCounter(builder, kDecayCounter, options.begin));
  const RoleScope role(builder, Role::kLrSchedule);
  ASSIGN_OR_RETURN(Variable * rate, CreateRate(builder, options.state));
  attributes.Set("kind", std::string(kind));
  RETURN_IF_ERROR(builder
                      .Append("lr_schedule", {{"Step", step}, {"LearningRate", options.after}}, {{"Out", rate}},
                              std::move(attributes))
                      .status());
  return rate;
}

Attributes DecayAttributes(const DecayOptions& options) {
  return {{"learning_rate", options.learning_rate},
          {"decay_steps", options.decay_steps},
          {"decay_rate", options.decay_rate},
          {"staircase", options.staircase}};
}

}  // namespace

absl::StatusOr<Variable*> StepCounter(ProgramBuilder& builder, const std::string& name, int64_t begin, int64_t step) {
  Block& block = builder.main().global_block();
  if (Variable* there = block.FindHere(name)) return there;
  ASSIGN_OR_RETURN(Variable * counter, builder.CreateState(name, {1}, DataType::kInt64,
                                                           Initializer::Constant(static_cast<double>(begin - step))));
  Operation increment;  // before all else: a step begins with it
  increment.type = "increment";
  increment.inputs = {{"X", {counter->name}}};
  increment.outputs = {{"Out", {counter->name}}};
  increment.attributes.Set("step", static_cast<double>(step));
  increment.role = name == kDecayCounter ? Role::kLrSchedule : Role::kForward;
  increment.site = builder.site();
  RETURN_IF_ERROR(InsertOperation(block, 0, std::move(increment)).status());
  return counter;
}

absl::StatusOr<Variable*> ExponentialDecay(ProgramBuilder& builder, const DecayOptions& options) {
  return Schedule(builder, "exponential", DecayAttributes(options));
}

absl::StatusOr<Variable*> NaturalExpDecay(ProgramBuilder& builder, const DecayOptions& options) {
  return Schedule(builder, "natural_exp", DecayAttributes(options));
}

absl::StatusOr<Variable*> InverseTimeDecay(ProgramBuilder& builder, const DecayOptions& options) {
  return Schedule(builder, "inverse_time", DecayAttributes(options));
}

absl::StatusOr<Variable*> PolynomialDecay(ProgramBuilder& builder, const PolynomialDecayOptions& options) {
  return Schedule(builder, "polynomial",
                  {{"learning_rate", options.learning_rate},
                   {"decay_steps", options.decay_steps},
                   {"end_learning_rate", options.end_learning_rate},
                   {"power", options.power},
                   {"cycle", options.cycle}});
}

absl::StatusOr<Variable*> PiecewiseDecay(ProgramBuilder& builder, const std::vector<double>& boundaries,
                                         const std::vector<double>& values) {
  return Schedule(builder, "piecewise", {{"boundaries", boundaries}, {"values", values}}, {.state = "learning_rate"});
}

absl::StatusOr<Variable*> NoamDecay(ProgramBuilder& builder, double d_model, double warmup_steps,
                                    double learning_rate) {
  return Schedule(builder, "noam",
                  {{"d_model", d_model}, {"warmup_steps", warmup_steps}, {"learning_rate", learning_rate}},
                  {.begin = 1});
}

absl::StatusOr<Variable*> CosineDecay(ProgramBuilder& builder, double learning_rate, double step_each_epoch,
                                      double epochs) {
  return Schedule(builder, "cosine",
                  {{"learning_rate", learning_rate}, {"step_each_epoch", step_each_epoch}, {"epochs", epochs}});
}

absl::StatusOr<Variable*> LinearWarmup(ProgramBuilder& builder, const std::variant<double, Variable*>& after,
                                       double warmup_steps, double start_lr, double end_lr) {
  Attributes attributes = {{"warmup_steps", warmup_steps}, {"start_lr", start_lr}, {"end_lr", end_lr}};
  Variable* const* rate = std::get_if<Variable*>(&after);
  if (rate == nullptr) attributes.Set("learning_rate", std::get<double>(after));
  return Schedule(builder, "linear_warmup", std::move(attributes),
                  {.after = rate == nullptr ? nullptr : *rate, .state = "learning_rate_warmup"});
}

}  // namespace regatta::program::layers
