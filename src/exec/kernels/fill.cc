// Tensors that are made: constants, random numbers, ranges.
#include <cmath>
#include <numbers>

#include "base/scalar.h"
#include "exec/kernel_table.h"
#include "exec/kernels/integers.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

// The shape that tensors give goes before the attribute.
Integers ShapeOf(const KernelCall& call) { return IntegersOf(call, "ShapeTensor", "ShapeTensorList", "shape"); }

// The attribute, with one extent of Input in it.
std::vector<int64_t> ShapeLikeBatch(const KernelCall& call) {
  std::vector<int64_t> shape = call.Ints("shape");
  const torch::Tensor& input = call.In("Input");
  const int64_t from = call.Int("input_dim_idx"), to = call.Int("output_dim_idx");
  shape.at(static_cast<size_t>(to < 0 ? to + static_cast<int64_t>(shape.size()) : to)) = input.size(from);
  return shape;
}

absl::Status GiveMade(KernelCall& call, torch::Tensor out) {
  call.SetOut("Out", std::move(out));
  return absl::OkStatus();
}

at::TensorOptions TypeOf(const KernelCall& call) { return ScalarTypeOfCode(call.Int("dtype")); }

// str_value has what a float cannot hold: large integers, "inf".
at::Scalar ConstantOf(const KernelCall& call) {
  const std::string& text = call.String("str_value");
  if (text.empty()) return call.Float("value");
  if (const auto whole = base::ParseInt(text)) return *whole;
  if (const auto number = base::ParseDouble(text)) return *number;
  return call.Float("value");
}

absl::Status FillConstant(KernelCall& call) {
  if (call.Has("ValueTensor"))
    return GiveMade(call, call.In("ValueTensor").reshape({1}).to(TypeOf(call).dtype()).expand(ShapeOf(call)).clone());
  return GiveMade(call, at::full(ShapeOf(call), ConstantOf(call), TypeOf(call)));
}

absl::Status FillConstantLikeBatch(KernelCall& call) {
  return GiveMade(call, at::full(ShapeLikeBatch(call), ConstantOf(call), TypeOf(call)));
}

absl::Status FillZerosLike(KernelCall& call) { return call.Give(at::zeros_like(call.In("X").detach())); }

absl::Status FillAnyLike(KernelCall& call) {
  const torch::Tensor x = call.In("X").detach();
  const int64_t code = call.Int("dtype");
  return call.Give(at::full(x.sizes(), call.Float("value"), code < 0 ? x.scalar_type() : ScalarTypeOfCode(code)));
}

absl::Status AssignValue(KernelCall& call) {
  const program::Attributes& attributes = call.attributes();
  torch::Tensor out;
  if (const auto& floats = attributes.Floats("fp32_values"); !floats.empty())
    out = at::tensor(at::ArrayRef<double>(floats), torch::kFloat64);
  for (const char* name : {"int32_values", "int64_values", "bool_values"})
    if (const auto& integers = attributes.Ints(name); !integers.empty())
      out = at::tensor(at::ArrayRef<int64_t>(integers), torch::kInt64);
  if (!out.defined()) out = at::empty({0}, torch::kFloat64);
  return GiveMade(call, out.reshape(call.Ints("shape")).to(TypeOf(call).dtype()));
}

// low and high, and Fluid's diagonal of a matrix that is read row after row.
torch::Tensor Uniform(const KernelCall& call, const std::vector<int64_t>& shape) {
  torch::Tensor out = at::empty(shape, TypeOf(call));
  out.uniform_(call.Float("min"), call.Float("max"), call.Generator());
  const int64_t count = call.Int("diag_num"), step = call.Int("diag_step");
  torch::Tensor flat = out.view({-1});
  for (int64_t i = 0; i < count && i * step + i < flat.size(0); ++i) flat[i * step + i] = call.Float("diag_val");
  return out;
}

torch::Tensor Gaussian(const KernelCall& call, const std::vector<int64_t>& shape) {
  return at::empty(shape, TypeOf(call)).normal_(call.Float("mean"), call.Float("std"), call.Generator());
}

absl::Status UniformRandom(KernelCall& call) { return GiveMade(call, Uniform(call, ShapeOf(call))); }
absl::Status UniformLikeBatch(KernelCall& call) { return GiveMade(call, Uniform(call, ShapeLikeBatch(call))); }
absl::Status GaussianRandom(KernelCall& call) { return GiveMade(call, Gaussian(call, ShapeOf(call))); }
absl::Status GaussianLikeBatch(KernelCall& call) { return GiveMade(call, Gaussian(call, ShapeLikeBatch(call))); }

// Within two deviations: the inverse of the distribution at uniform numbers between Φ(-2) and Φ(2).
absl::Status TruncatedGaussian(KernelCall& call) {
  const double edge = std::erf(2 / std::numbers::sqrt2);
  torch::Tensor out = at::empty(ShapeOf(call), torch::kFloat64).uniform_(-edge, edge, call.Generator());
  out = at::erfinv(out) * (std::numbers::sqrt2 * call.Float("std")) + call.Float("mean");
  return GiveMade(call, out.to(TypeOf(call).dtype()));
}

absl::Status RandInt(KernelCall& call) {
  const int64_t low = call.Int("low"), high = call.Int("high");
  if (low >= high)
    return absl::InvalidArgumentError(absl::StrCat("low is ", low, " and high is ", high, "; want low < high"));
  return GiveMade(call, at::randint(low, high, ShapeOf(call), call.Generator(), TypeOf(call)));
}

absl::Status RandPerm(KernelCall& call) {
  return GiveMade(call, at::randperm(call.Int("n"), call.Generator(), torch::kInt64).to(TypeOf(call).dtype()));
}

absl::Status Eye(KernelCall& call) {
  const int64_t rows = call.Int("num_rows"), columns = call.Int("num_columns");
  return GiveMade(call, at::eye(rows, columns < 0 ? rows : columns, TypeOf(call)));
}

absl::Status Range(KernelCall& call) {
  const torch::Tensor& start = call.In("Start");
  const double step = FirstElement(call.In("Step"));
  if (step == 0) return absl::InvalidArgumentError("Step is 0; want another number");
  return GiveMade(call, at::arange(FirstElement(start), FirstElement(call.In("End")), step, start.scalar_type()));
}

absl::Status LinSpace(KernelCall& call) {
  const torch::Tensor& start = call.In("Start");
  const auto count = static_cast<int64_t>(FirstElement(call.In("Num")));
  if (count < 1) return absl::InvalidArgumentError(absl::StrCat("Num is ", count, "; want 1 or more"));
  return GiveMade(call, at::linspace(FirstElement(start), FirstElement(call.In("Stop")), count, start.scalar_type()));
}

constexpr KernelRow kFillKernels[] = {
    {"fill_constant", FillConstant},
    {"fill_constant_batch_size_like", FillConstantLikeBatch},
    {"fill_zeros_like", FillZerosLike},
    {"fill_any_like", FillAnyLike},
    {"assign_value", AssignValue},
    {"uniform_random", UniformRandom},
    {"gaussian_random", GaussianRandom},
    {"truncated_gaussian_random", TruncatedGaussian},
    {"uniform_random_batch_size_like", UniformLikeBatch},
    {"gaussian_random_batch_size_like", GaussianLikeBatch},
    {"randint", RandInt},
    {"randperm", RandPerm},
    {"eye", Eye},
    {"range", Range},
    {"linspace", LinSpace},
};

}  // namespace

std::span<const KernelRow> FillKernels() { return kFillKernels; }

}  // namespace regatta::exec
