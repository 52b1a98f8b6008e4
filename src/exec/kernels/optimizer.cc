// The updates of a parameter by its gradient, in place. The formulas are those of PaddlePaddle 1.8.
#include <cmath>

#include "exec/kernel_table.h"
#include "exec/kernels/row_sums.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

// The parameter and its accumulators, in the order of the rule's slots, to be changed in place.
using Targets = std::vector<torch::Tensor>;
using Rule = void (*)(const KernelCall& call, Targets& targets, const torch::Tensor& gradient);

struct SlotPair {
  std::string_view input;
  std::string_view output;
};

// What a gradient of rows means. kAsZeros: rows that are not there have the gradient 0, and their accumulators decay.
// kLeftAlone: only its rows are updated.
enum class OtherRows : uint8_t { kAsZeros, kLeftAlone };

double RateOf(const KernelCall& call) { return FirstElement(call.In("LearningRate")); }

void UpdateRows(const KernelCall& call, Rule rule, Targets& targets, const SelectedRows& gradient) {
  const SelectedRows merged = MergeRows(gradient);
  Targets parts;
  for (const torch::Tensor& target : targets) parts.push_back(target.index_select(0, merged.rows));
  rule(call, parts, merged.values);
  for (size_t i = 0; i < targets.size(); ++i) targets[i].index_copy_(0, merged.rows, parts[i]);
}

absl::Status Update(KernelCall& call, Rule rule, std::initializer_list<SlotPair> slots,
                    OtherRows others = OtherRows::kAsZeros) {
  Targets targets;
  for (const SlotPair& slot : slots) {
    if (!call.Has(slot.input)) continue;
    targets.push_back(call.Update(slot.input, slot.output));
    if (targets.back().numel() != targets.front().numel()) {
      return absl::InvalidArgumentError(absl::StrCat(base::View(slot.input), " is ", TensorText(targets.back()),
                                                     " and Param is ", TensorText(targets.front()),
                                                     "; load values of one program, or run its startup program"));
    }
  }
  if (const SelectedRows* rows = call.InRows("Grad")) {
    if (rows->height != targets[0].size(0))
      return absl::InvalidArgumentError(absl::StrCat("Grad has the height ", rows->height, " and Param is ",
                                                     TensorText(targets[0]), "; want one height for both"));
    if (others == OtherRows::kLeftAlone) {
      UpdateRows(call, rule, targets, *rows);
    } else {
      rule(call, targets, ToDense(*rows));
    }
    return absl::OkStatus();
  }
  const torch::Tensor& gradient = call.In("Grad");
  if (gradient.numel() != targets[0].numel())
    return absl::InvalidArgumentError(absl::StrCat("Grad is ", TensorText(gradient), " and Param is ",
                                                   TensorText(targets[0]), "; want one shape for both"));
  rule(call, targets, gradient.sizes() == targets[0].sizes() ? gradient : gradient.reshape(targets[0].sizes()));
  return absl::OkStatus();
}

absl::Status Sgd(KernelCall& call) {
  if (const SelectedRows* rows = call.InRows("Grad")) {
    call.Update("Param", "ParamOut").index_add_(0, rows->rows, rows->values, -RateOf(call));
    return absl::OkStatus();
  }
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    targets[0].add_(g, -RateOf(in));
  };
  return Update(call, rule, {{"Param", "ParamOut"}});
}

absl::Status Momentum(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    torch::Tensor &parameter = targets[0], &velocity = targets[1];
    const double rate = RateOf(in), mu = in.Float("mu");
    velocity.mul_(mu).add_(g);
    if (in.Bool("use_nesterov")) parameter.add_(g, -rate).add_(velocity, -rate * mu);
    if (!in.Bool("use_nesterov")) parameter.add_(velocity, -rate);
  };
  return Update(call, rule, {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}});
}

absl::Status LarsMomentum(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    torch::Tensor &parameter = targets[0], &velocity = targets[1];
    const double decay = in.Float("lars_weight_decay");
    const double p_norm = at::norm(parameter).item<double>(), g_norm = at::norm(g).item<double>();
    double rate = RateOf(in);
    if (decay > 0 && p_norm > 0 && g_norm > 0) rate *= in.Float("lars_coeff") * p_norm / (g_norm + decay * p_norm);
    velocity.mul_(in.Float("mu")).add_(g, rate).add_(parameter, rate * decay);
    parameter.sub_(velocity);
  };
  return Update(call, rule, {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}});
}

absl::Status Adagrad(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    targets[1].addcmul_(g, g);
    targets[0].addcdiv_(g, at::sqrt(targets[1]).add_(in.Float("epsilon")), -RateOf(in));
  };
  return Update(call, rule, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}}, OtherRows::kLeftAlone);
}

absl::Status DecayedAdagrad(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double decay = in.Float("decay");
    targets[1].mul_(decay).addcmul_(g, g, 1 - decay);
    targets[0].addcdiv_(g, at::sqrt(targets[1]).add_(in.Float("epsilon")), -RateOf(in));
  };
  return Update(call, rule, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}});
}

absl::Status Adadelta(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double rho = in.Float("rho"), epsilon = in.Float("epsilon");
    torch::Tensor &gradients = targets[1], &updates = targets[2];
    gradients.mul_(rho).addcmul_(g, g, 1 - rho);
    const torch::Tensor step = at::sqrt((updates + epsilon) / (gradients + epsilon)) * g;
    updates.mul_(rho).addcmul_(step, step, 1 - rho);
    targets[0].sub_(step);
  };
  return Update(
      call, rule,
      {{"Param", "ParamOut"}, {"AvgSquaredGrad", "AvgSquaredGradOut"}, {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}});
}

// A tensor's number if there is one, else the attribute's.
double BetaOf(const KernelCall& call, std::string_view slot, std::string_view attribute) {
  return call.Has(slot) ? FirstElement(call.In(slot)) : call.Float(attribute);
}

absl::Status Adam(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double beta1 = BetaOf(in, "Beta1Tensor", "beta1"), beta2 = BetaOf(in, "Beta2Tensor", "beta2");
    const double power1 = FirstElement(in.In("Beta1Pow")), power2 = FirstElement(in.In("Beta2Pow"));
    const double rate = RateOf(in) * std::sqrt(1 - power2) / (1 - power1);
    targets[1].mul_(beta1).add_(g, 1 - beta1);
    targets[2].mul_(beta2).addcmul_(g, g, 1 - beta2);
    targets[0].addcdiv_(targets[1], at::sqrt(targets[2]).add_(in.Float("epsilon")), -rate);
  };
  const OtherRows others = call.Bool("lazy_mode") ? OtherRows::kLeftAlone : OtherRows::kAsZeros;
  RETURN_IF_ERROR(
      Update(call, rule, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}, others));
  call.Update("Beta1Pow", "Beta1PowOut").mul_(BetaOf(call, "Beta1Tensor", "beta1"));
  call.Update("Beta2Pow", "Beta2PowOut").mul_(BetaOf(call, "Beta2Tensor", "beta2"));
  return absl::OkStatus();
}

absl::Status Adamax(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double beta1 = in.Float("beta1"), beta2 = in.Float("beta2");
    targets[1].mul_(beta1).add_(g, 1 - beta1);
    targets[2].copy_(at::maximum(at::abs(g), targets[2] * beta2 + in.Float("epsilon")));
    targets[0].addcdiv_(targets[1], targets[2], -RateOf(in) / (1 - FirstElement(in.In("Beta1Pow"))));
  };
  return Update(call, rule, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}});
}

absl::Status Lamb(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double beta1 = in.Float("beta1"), beta2 = in.Float("beta2");
    targets[1].mul_(beta1).add_(g, 1 - beta1);
    targets[2].mul_(beta2).addcmul_(g, g, 1 - beta2);
    const torch::Tensor first = targets[1] / (1 - FirstElement(in.In("Beta1Pow")));
    const torch::Tensor second = targets[2] / (1 - FirstElement(in.In("Beta2Pow")));
    const torch::Tensor step = first / (at::sqrt(second) + in.Float("epsilon")) + targets[0] * in.Float("weight_decay");
    const double p_norm = at::norm(targets[0]).item<double>(), s_norm = at::norm(step).item<double>();
    targets[0].sub_(step, RateOf(in) * (p_norm > 0 && s_norm > 0 ? p_norm / s_norm : 1));
  };
  return Update(call, rule, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}});
}

absl::Status RmsProp(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double decay = in.Float("decay");
    torch::Tensor &squares = targets[1], &moment = targets[2];
    squares.mul_(decay).addcmul_(g, g, 1 - decay);
    torch::Tensor variance = squares + in.Float("epsilon");
    if (in.Bool("centered")) {
      targets[3].mul_(decay).add_(g, 1 - decay);
      variance = variance - targets[3] * targets[3];
    }
    moment.mul_(in.Float("momentum")).addcdiv_(g, at::sqrt(variance), RateOf(in));
    targets[0].sub_(moment);
  };
  if (call.Bool("centered") && !call.Has("MeanGrad"))
    return absl::InvalidArgumentError("centered needs the input MeanGrad; give it one");
  return Update(
      call, rule,
      {{"Param", "ParamOut"}, {"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}, {"MeanGrad", "MeanGradOut"}});
}

absl::Status Ftrl(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double rate = RateOf(in), l1 = in.Float("l1") + 1e-10, l2 = in.Float("l2") + 1e-10;
    const double power = -in.Float("lr_power");
    torch::Tensor &squares = targets[1], &linear = targets[2];
    const torch::Tensor before = at::pow(squares, power);
    squares.addcmul_(g, g);
    const torch::Tensor after = at::pow(squares, power);
    linear.add_(g).sub_((after - before) / rate * targets[0]);
    const torch::Tensor shrunk = (at::sign(linear) * l1 - linear) / (after / rate + 2 * l2);
    targets[0].copy_(at::where(at::abs(linear) > l1, shrunk, at::zeros_like(shrunk)));
  };
  return Update(
      call, rule,
      {{"Param", "ParamOut"}, {"SquaredAccumulator", "SquaredAccumOut"}, {"LinearAccumulator", "LinearAccumOut"}},
      OtherRows::kLeftAlone);
}

// One draw of noise for all elements.
absl::Status Dpsgd(KernelCall& call) {
  const auto rule = [](const KernelCall& in, Targets& targets, const torch::Tensor& g) {
    const double norm = at::norm(g).item<double>(), clip = in.Float("clip"), rate = RateOf(in);
    const double noise = at::empty({1}, torch::kFloat64).normal_(0, in.Float("sigma"), in.Generator()).item<double>();
    targets[0].sub_(g, norm > clip ? rate * clip / norm : rate).sub_(rate * noise / in.Float("batch_size"));
  };
  return Update(call, rule, {{"Param", "ParamOut"}});
}

constexpr KernelRow kOptimizerKernels[] = {
    {"sgd", Sgd, Accepts::kRows},
    {"momentum", Momentum, Accepts::kRows},
    {"lars_momentum", LarsMomentum, Accepts::kRows},
    {"adagrad", Adagrad, Accepts::kRows},
    {"decayed_adagrad", DecayedAdagrad, Accepts::kRows},
    {"adadelta", Adadelta, Accepts::kRows},
    {"adam", Adam, Accepts::kRows},
    {"adamax", Adamax, Accepts::kRows},
    {"lamb", Lamb, Accepts::kRows},
    {"rmsprop", RmsProp, Accepts::kRows},
    {"ftrl", Ftrl, Accepts::kRows},
    {"dpsgd", Dpsgd, Accepts::kRows},
};

}  // namespace

std::span<const KernelRow> OptimizerKernels() { return kOptimizerKernels; }

}  // namespace regatta::exec
