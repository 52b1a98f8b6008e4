// Operators on one tensor, element by element, and those along one axis that keep its shape.

#include <cmath>

#include "exec/kernel_table.h"
#include "exec/kernels/row_sums.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

using Elementwise = at::Tensor (*)(const at::Tensor& x);

template <Elementwise kFunction>
absl::Status OnX(KernelCall& call) {
  return call.Give(kFunction(call.In("X")));
}

at::Tensor Sigmoid(const at::Tensor& x) { return at::sigmoid(x); }
at::Tensor LogSigmoid(const at::Tensor& x) { return at::log_sigmoid(x); }
at::Tensor Relu(const at::Tensor& x) { return at::relu(x); }
at::Tensor Tanh(const at::Tensor& x) { return at::tanh(x); }
at::Tensor TanhShrink(const at::Tensor& x) { return x - at::tanh(x); }
at::Tensor Exp(const at::Tensor& x) { return at::exp(x); }
at::Tensor Log(const at::Tensor& x) { return at::log(x); }
at::Tensor Log1p(const at::Tensor& x) { return at::log1p(x); }
at::Tensor Square(const at::Tensor& x) { return at::mul(x, x); }
at::Tensor Sqrt(const at::Tensor& x) { return at::sqrt(x); }
at::Tensor Rsqrt(const at::Tensor& x) { return at::rsqrt(x); }
at::Tensor Reciprocal(const at::Tensor& x) { return at::reciprocal(x); }
at::Tensor Abs(const at::Tensor& x) { return at::abs(x); }
at::Tensor Sign(const at::Tensor& x) { return at::sign(x); }
at::Tensor Ceil(const at::Tensor& x) { return at::ceil(x); }
at::Tensor Floor(const at::Tensor& x) { return at::floor(x); }
// Halves go away from zero, as std::round does; at::round takes the even neighbour.
at::Tensor Round(const at::Tensor& x) { return at::sign(x) * at::floor(at::abs(x) + 0.5); }
at::Tensor Sin(const at::Tensor& x) { return at::sin(x); }
at::Tensor Cos(const at::Tensor& x) { return at::cos(x); }
at::Tensor Asin(const at::Tensor& x) { return at::asin(x); }
at::Tensor Acos(const at::Tensor& x) { return at::acos(x); }
at::Tensor Atan(const at::Tensor& x) { return at::atan(x); }
at::Tensor Erf(const at::Tensor& x) { return at::erf(x); }
at::Tensor Softplus(const at::Tensor& x) { return at::softplus(x); }
at::Tensor Softsign(const at::Tensor& x) { return x / (1 + at::abs(x)); }

// The tensor of the slot, if there is one, goes before the attribute.
double NumberOf(const KernelCall& call, std::string_view slot, std::string_view attribute) {
  return call.Has(slot) ? FirstElement(call.In(slot)) : call.Float(attribute);
}

at::Tensor ScaleAndShift(const at::Tensor& x, double scale, double bias, bool bias_last) {
  if (!x.is_floating_point() && (scale != std::floor(scale) || bias != std::floor(bias)))
    return ScaleAndShift(x.to(torch::kFloat64), scale, bias, bias_last).to(x.scalar_type());
  const auto number = [&](double value) -> at::Scalar {
    if (x.is_floating_point()) return value;
    return static_cast<int64_t>(value);
  };
  if (bias == 0) return x * number(scale);
  return bias_last ? x * number(scale) + number(bias) : (x + number(bias)) * number(scale);
}

absl::Status Scale(KernelCall& call) {
  const double scale = NumberOf(call, "ScaleTensor", "scale"), bias = call.Float("bias");
  if (const SelectedRows* rows = call.InRows("X")) {
    call.SetOut("Out", SelectedRows{rows->rows, ScaleAndShift(rows->values, scale, bias, true), rows->height});
    return absl::OkStatus();
  }
  return call.Give(ScaleAndShift(call.In("X"), scale, bias, call.Bool("bias_after_scale")));
}

absl::Status Pow(KernelCall& call) {
  return call.Give(at::pow(call.In("X"), NumberOf(call, "FactorTensor", "factor")));
}

absl::Status Clip(KernelCall& call) {
  const double low = NumberOf(call, "Min", "min"), high = NumberOf(call, "Max", "max");
  if (const SelectedRows* rows = call.InRows("X")) {
    call.SetOut("Out", SelectedRows{rows->rows, at::clamp(rows->values, low, high), rows->height});
    return absl::OkStatus();
  }
  return call.Give(at::clamp(call.In("X"), low, high));
}

at::Tensor WithNorm(const at::Tensor& x, double limit) {
  const at::Tensor norm = at::norm(x);
  return at::where(norm > limit, x * (limit / norm), x);
}

absl::Status ClipByNorm(KernelCall& call) {
  const double limit = call.Float("max_norm");
  if (const SelectedRows* rows = call.InRows("X")) {
    const SelectedRows merged = MergeRows(*rows);
    call.SetOut("Out", SelectedRows{merged.rows, WithNorm(merged.values, limit), merged.height});
    return absl::OkStatus();
  }
  return call.Give(WithNorm(call.In("X"), limit));
}

absl::Status Increment(KernelCall& call) {
  return call.Give(ScaleAndShift(call.In("X").detach(), 1, call.Float("step"), true));
}

absl::Status Relu6(KernelCall& call) { return call.Give(at::clamp(call.In("X"), 0, call.Float("threshold"))); }
absl::Status Brelu(KernelCall& call) {
  return call.Give(at::clamp(call.In("X"), call.Float("t_min"), call.Float("t_max")));
}
absl::Status LeakyRelu(KernelCall& call) { return call.Give(at::leaky_relu(call.In("X"), call.Float("alpha"))); }
absl::Status SoftRelu(KernelCall& call) {
  const double limit = call.Float("threshold");
  return call.Give(at::log1p(at::exp(at::clamp(call.In("X"), -limit, limit))));
}
absl::Status ThresholdedRelu(KernelCall& call) {
  return call.Give(at::threshold(call.In("X"), call.Float("threshold"), 0));
}
absl::Status Elu(KernelCall& call) { return call.Give(at::elu(call.In("X"), call.Float("alpha"))); }
absl::Status Selu(KernelCall& call) {
  return call.Give(at::elu(call.In("X"), call.Float("alpha"), call.Float("scale")));
}
absl::Status Gelu(KernelCall& call) {
  return call.Give(at::gelu(call.In("X"), call.Bool("approximate") ? "tanh" : "none"));
}
absl::Status Swish(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  return call.Give(x * at::sigmoid(x * call.Float("beta")));
}
absl::Status Stanh(KernelCall& call) {
  return call.Give(at::tanh(call.In("X") * call.Float("scale_a")) * call.Float("scale_b"));
}
absl::Status HardSigmoid(KernelCall& call) {
  return call.Give(at::clamp(call.In("X") * call.Float("slope") + call.Float("offset"), 0, 1));
}
absl::Status HardSwish(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  return call.Give(x * at::clamp(x + call.Float("offset"), 0, call.Float("threshold")) / call.Float("scale"));
}
absl::Status HardShrink(KernelCall& call) { return call.Give(at::hardshrink(call.In("X"), call.Float("threshold"))); }
absl::Status SoftShrink(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  return call.Give(at::sign(x) * at::relu(at::abs(x) - call.Float("lambda")));
}

absl::Status Prelu(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  torch::Tensor alpha = call.In("Alpha");
  if (call.String("mode") == "channel") {
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
    shape.at(1) = alpha.numel();
    alpha = alpha.reshape(shape);
  } else if (call.String("mode") == "all") {
    alpha = alpha.reshape(std::vector<int64_t>(static_cast<size_t>(x.dim()), 1));
  }
  return call.Give(at::where(x > 0, x, x * alpha));
}

absl::Status Maxout(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const int64_t groups = call.Int("groups"),
                axis = call.Int("axis") < 0 ? call.Int("axis") + x.dim() : call.Int("axis");
  std::vector<int64_t> shape = x.sizes().vec();
  shape.at(static_cast<size_t>(axis)) /= groups;
  shape.insert(shape.begin() + axis + 1, groups);
  return call.Give(at::amax(x.reshape(shape), axis + 1));
}

absl::Status Softmax(KernelCall& call) { return call.Give(at::softmax(call.In("X"), call.Int("axis"))); }

absl::Status CumSum(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const int64_t axis = call.Int("axis");
  const bool reverse = call.Bool("reverse");
  torch::Tensor sums = at::cumsum(reverse ? x.flip(axis) : x, axis).to(x.scalar_type());
  if (reverse) sums = sums.flip(axis);
  if (call.Bool("exclusive")) sums = sums - x;
  return call.Give(sums);
}

absl::Status LabelSmooth(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const double epsilon = call.Float("epsilon");
  if (call.Has("PriorDist")) return call.Give(x * (1 - epsilon) + call.In("PriorDist") * epsilon);
  return call.Give(x * (1 - epsilon) + epsilon / static_cast<double>(x.size(-1)));
}

constexpr KernelRow kActivationKernels[] = {
    {"sigmoid", OnX<Sigmoid>},
    {"logsigmoid", OnX<LogSigmoid>},
    {"relu", OnX<Relu>},
    {"tanh", OnX<Tanh>},
    {"tanh_shrink", OnX<TanhShrink>},
    {"exp", OnX<Exp>},
    {"log", OnX<Log>},
    {"log1p", OnX<Log1p>},
    {"square", OnX<Square>},
    {"sqrt", OnX<Sqrt>},
    {"rsqrt", OnX<Rsqrt>},
    {"reciprocal", OnX<Reciprocal>},
    {"abs", OnX<Abs>},
    {"sign", OnX<Sign>},
    {"ceil", OnX<Ceil>},
    {"floor", OnX<Floor>},
    {"round", OnX<Round>},
    {"sin", OnX<Sin>},
    {"cos", OnX<Cos>},
    {"asin", OnX<Asin>},
    {"acos", OnX<Acos>},
    {"atan", OnX<Atan>},
    {"erf", OnX<Erf>},
    {"softplus", OnX<Softplus>},
    {"softsign", OnX<Softsign>},
    {"scale", Scale, Accepts::kRows},
    {"pow", Pow},
    {"clip", Clip, Accepts::kRows},
    {"clip_by_norm", ClipByNorm, Accepts::kRows},
    {"increment", Increment},
    {"relu6", Relu6},
    {"brelu", Brelu},
    {"leaky_relu", LeakyRelu},
    {"soft_relu", SoftRelu},
    {"thresholded_relu", ThresholdedRelu},
    {"elu", Elu},
    {"selu", Selu},
    {"gelu", Gelu},
    {"swish", Swish},
    {"stanh", Stanh},
    {"hard_sigmoid", HardSigmoid},
    {"hard_swish", HardSwish},
    {"hard_shrink", HardShrink},
    {"softshrink", SoftShrink},
    {"prelu", Prelu},
    {"maxout", Maxout},
    {"softmax", Softmax},
    {"cumsum", CumSum},
    {"label_smooth", LabelSmooth},
};

}  // namespace

std::span<const KernelRow> ActivationKernels() { return kActivationKernels; }

}  // namespace regatta::exec
