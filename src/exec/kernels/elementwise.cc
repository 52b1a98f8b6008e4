// Operators on two tensors, element by element.
#include "exec/kernel_table.h"
#include "exec/kernels/broadcast.h"

namespace regatta::exec {

namespace {

// The LoD is X's, or that of Y if X has none.
absl::Status GiveBroadcast(KernelCall& call, torch::Tensor out) {
  return call.Give("Out", std::move(out), call.LodOf("X").empty() && !call.LodOf("Y").empty() ? "Y" : "X");
}

using Pairwise = at::Tensor (*)(const at::Tensor& x, const at::Tensor& y);

template <Pairwise kFunction>
absl::Status OnPairs(KernelCall& call) {
  const auto [x, y] = Broadcast(call.In("X"), call.In("Y"), call.Int("axis"));
  return GiveBroadcast(call, kFunction(x, y));
}

at::Tensor Add(const at::Tensor& x, const at::Tensor& y) { return at::add(x, y); }
at::Tensor Subtract(const at::Tensor& x, const at::Tensor& y) { return at::sub(x, y); }
at::Tensor Multiply(const at::Tensor& x, const at::Tensor& y) { return at::mul(x, y); }
at::Tensor Divide(const at::Tensor& x, const at::Tensor& y) {
  return x.is_floating_point() ? at::div(x, y) : at::div(x, y, "trunc");  // integers as in C++
}
at::Tensor Power(const at::Tensor& x, const at::Tensor& y) { return at::pow(x, y); }
at::Tensor Modulo(const at::Tensor& x, const at::Tensor& y) { return at::remainder(x, y); }
at::Tensor FloorDivide(const at::Tensor& x, const at::Tensor& y) { return at::div(x, y, "floor"); }
// Of two equal values all of the gradient goes to Y's, as in Fluid; libtorch would halve it.
at::Tensor Larger(const at::Tensor& x, const at::Tensor& y) { return at::where(x > y, x, y); }
at::Tensor Smaller(const at::Tensor& x, const at::Tensor& y) { return at::where(x < y, x, y); }

at::Tensor Less(const at::Tensor& x, const at::Tensor& y) { return at::lt(x, y); }
at::Tensor LessOrEqual(const at::Tensor& x, const at::Tensor& y) { return at::le(x, y); }
at::Tensor Greater(const at::Tensor& x, const at::Tensor& y) { return at::gt(x, y); }
at::Tensor GreaterOrEqual(const at::Tensor& x, const at::Tensor& y) { return at::ge(x, y); }
at::Tensor Equal(const at::Tensor& x, const at::Tensor& y) { return at::eq(x, y); }
at::Tensor NotEqual(const at::Tensor& x, const at::Tensor& y) { return at::ne(x, y); }

// Rows times a number stay rows: a gradient that is clipped.
absl::Status ElementwiseMul(KernelCall& call) {
  const SelectedRows* rows = call.InRows("X");
  if (rows == nullptr) return OnPairs<Multiply>(call);
  const torch::Tensor& y = call.In("Y");
  if (!y.defined() || y.numel() != 1)
    return absl::InvalidArgumentError(
        "X is selected rows, so Y must be one number; get_tensor_from_selected_rows "
        "makes a tensor of X");
  call.SetOut("Out", SelectedRows{rows->rows, rows->values * y, rows->height});
  return absl::OkStatus();
}

absl::Status Minus(KernelCall& call) { return GiveBroadcast(call, call.In("X") - call.In("Y")); }

absl::Status And(KernelCall& call) { return GiveBroadcast(call, at::logical_and(call.In("X"), call.In("Y"))); }
absl::Status Or(KernelCall& call) { return GiveBroadcast(call, at::logical_or(call.In("X"), call.In("Y"))); }
absl::Status Xor(KernelCall& call) { return GiveBroadcast(call, at::logical_xor(call.In("X"), call.In("Y"))); }
absl::Status Not(KernelCall& call) { return call.Give(at::logical_not(call.In("X"))); }

absl::Status GiveTruth(KernelCall& call, const torch::Tensor& truth) {
  call.SetOut("Out", truth.reshape({1}));
  return absl::OkStatus();
}

const torch::Tensor& ValuesOfX(const KernelCall& call) {
  const SelectedRows* rows = call.InRows("X");
  return rows ? rows->values : call.In("X");
}

absl::Status IsFinite(KernelCall& call) { return GiveTruth(call, at::isfinite(ValuesOfX(call)).all()); }
absl::Status IsInf(KernelCall& call) { return GiveTruth(call, at::isinf(ValuesOfX(call)).any()); }
absl::Status IsNan(KernelCall& call) { return GiveTruth(call, at::isnan(ValuesOfX(call)).any()); }
absl::Status IsEmpty(KernelCall& call) {
  return GiveTruth(call, torch::full({1}, call.In("X").numel() == 0, torch::kBool));
}

constexpr KernelRow kElementwiseKernels[] = {
    {"elementwise_add", OnPairs<Add>},
    {"elementwise_sub", OnPairs<Subtract>},
    {"elementwise_mul", ElementwiseMul, Accepts::kRows},
    {"elementwise_div", OnPairs<Divide>},
    {"elementwise_max", OnPairs<Larger>},
    {"elementwise_min", OnPairs<Smaller>},
    {"elementwise_pow", OnPairs<Power>},
    {"elementwise_mod", OnPairs<Modulo>},
    {"elementwise_floordiv", OnPairs<FloorDivide>},
    {"minus", Minus},
    {"less_than", OnPairs<Less>},
    {"less_equal", OnPairs<LessOrEqual>},
    {"greater_than", OnPairs<Greater>},
    {"greater_equal", OnPairs<GreaterOrEqual>},
    {"equal", OnPairs<Equal>},
    {"not_equal", OnPairs<NotEqual>},
    {"logical_and", And},
    {"logical_or", Or},
    {"logical_xor", Xor},
    {"logical_not", Not},
    {"isfinite", IsFinite, Accepts::kRows},
    {"isinf", IsInf, Accepts::kRows},
    {"isnan", IsNan, Accepts::kRows},
    {"is_empty", IsEmpty},
};

}  // namespace

std::span<const KernelRow> ElementwiseKernels() { return kElementwiseKernels; }

}  // namespace regatta::exec
