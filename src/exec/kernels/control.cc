// Schedules of the learning rate.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "exec/kernel_table.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

double Polynomial(const KernelCall& call, double step, double rate) {
  double steps = call.Float("decay_steps");
  if (call.Bool("cycle")) steps *= std::max(1.0, std::ceil(step / steps));
  const double end = call.Float("end_learning_rate");
  return (rate - end) * std::pow(1 - std::min(step, steps) / steps, call.Float("power")) + end;
}

double Piecewise(const KernelCall& call, double step) {
  const std::vector<double>&boundaries = call.attributes().Floats("boundaries"),
        &values = call.attributes().Floats("values");
  size_t i = 0;
  while (i < boundaries.size() && step >= boundaries[i]) ++i;
  return values.at(i);
}

double RateAt(const KernelCall& call, double step) {
  const std::string& kind = call.String("kind");
  const double rate = call.Has("LearningRate") ? FirstElement(call.In("LearningRate")) : call.Float("learning_rate");
  const double decay = call.Float("decay_rate"), warmup = call.Float("warmup_steps");
  double part = step / call.Float("decay_steps");
  if (call.Bool("staircase")) part = std::floor(part);
  if (kind == "exponential") return rate * std::pow(decay, part);
  if (kind == "natural_exp") return rate * std::exp(-decay * part);
  if (kind == "inverse_time") return rate / (1 + decay * part);
  if (kind == "polynomial") return Polynomial(call, step, rate);
  if (kind == "piecewise") return Piecewise(call, step);
  if (kind == "noam")
    return rate / std::sqrt(call.Float("d_model")) * std::min(1 / std::sqrt(step), step * std::pow(warmup, -1.5));
  if (kind == "cosine") {
    const double epoch = std::floor(step / call.Float("step_each_epoch"));
    return rate * 0.5 * (std::cos(epoch * std::numbers::pi / call.Float("epochs")) + 1);
  }
  const double start = call.Float("start_lr"), end = call.Float("end_lr");  // linear_warmup
  return step < warmup ? start + (end - start) * step / warmup : rate;
}

absl::Status LrSchedule(KernelCall& call) {
  call.SetOut("Out", at::full({1}, RateAt(call, FirstElement(call.In("Step"))), torch::kFloat32));
  return absl::OkStatus();
}

constexpr KernelRow kControlKernels[] = {
    {"lr_schedule", LrSchedule},
};

}  // namespace

std::span<const KernelRow> ControlKernels() { return kControlKernels; }

}  // namespace regatta::exec
