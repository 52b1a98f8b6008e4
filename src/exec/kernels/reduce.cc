// Sums, means and other reductions over axes; the largest along an axis.
#include "exec/kernel_table.h"
#include "exec/kernels/row_sums.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

// The axes that are reduced, and what is left of the shape; [1] if nothing is.
struct Reduction {
  std::vector<int64_t> axes;
  std::vector<int64_t> shape;
};

Reduction ReductionOf(const KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  std::vector<bool> reduced(static_cast<size_t>(x.dim()), call.Bool("reduce_all"));
  if (!call.Bool("reduce_all"))
    for (const int64_t axis : call.Ints("dim"))
      reduced.at(static_cast<size_t>(axis < 0 ? axis + x.dim() : axis)) = true;
  Reduction reduction;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) reduction.axes.push_back(static_cast<int64_t>(i));
    if (!reduced[i]) reduction.shape.push_back(x.size(static_cast<int64_t>(i)));
    if (reduced[i] && call.Bool("keep_dim")) reduction.shape.push_back(1);
  }
  if (reduction.shape.empty()) reduction.shape = {1};
  return reduction;
}

using Reducer = at::Tensor (*)(const at::Tensor& x, at::IntArrayRef axes);

template <Reducer kFunction>
absl::Status Reduce(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const Reduction reduction = ReductionOf(call);
  const torch::Tensor out = kFunction(x, reduction.axes).reshape(reduction.shape);
  const bool rows_stay = reduction.axes.empty() || reduction.axes[0] != 0;
  call.SetOut("Out", out, rows_stay ? call.LodOf("X") : Lod());
  return absl::OkStatus();
}

at::Tensor Sum(const at::Tensor& x, at::IntArrayRef axes) { return at::sum(x, axes, false, x.scalar_type()); }
at::Tensor Mean(const at::Tensor& x, at::IntArrayRef axes) { return at::mean(x, axes); }
at::Tensor Largest(const at::Tensor& x, at::IntArrayRef axes) { return at::amax(x, axes); }
at::Tensor Smallest(const at::Tensor& x, at::IntArrayRef axes) { return at::amin(x, axes); }
// From the last axis to the first, so that numbers of axes stay.
at::Tensor Product(const at::Tensor& x, at::IntArrayRef axes) {
  at::Tensor out = x;
  for (size_t i = axes.size(); i-- > 0;) out = at::prod(out, axes[i], false, x.scalar_type());
  return out;
}
at::Tensor All(const at::Tensor& x, at::IntArrayRef axes) {
  at::Tensor out = x.to(torch::kBool);
  for (size_t i = axes.size(); i-- > 0;) out = at::all(out, axes[i]);
  return out;
}
at::Tensor Any(const at::Tensor& x, at::IntArrayRef axes) {
  at::Tensor out = x.to(torch::kBool);
  for (size_t i = axes.size(); i-- > 0;) out = at::any(out, axes[i]);
  return out;
}
at::Tensor Frobenius(const at::Tensor& x, at::IntArrayRef axes) { return at::sqrt(at::sum(x * x, axes)); }
at::Tensor LogSumExp(const at::Tensor& x, at::IntArrayRef axes) { return at::logsumexp(x, axes); }

absl::Status GiveNumber(KernelCall& call, const torch::Tensor& number) {
  call.SetOut("Out", number.reshape({1}));
  return absl::OkStatus();
}

absl::Status MeanOfAll(KernelCall& call) { return GiveNumber(call, at::mean(call.In("X"))); }
absl::Status L1Norm(KernelCall& call) { return GiveNumber(call, at::sum(at::abs(call.In("X")))); }
absl::Status SquaredNorm(KernelCall& call) { return GiveNumber(call, at::sum(call.In("X") * call.In("X"))); }

absl::Status SumOfRows(KernelCall& call) {
  std::vector<torch::Tensor> rows, values;
  for (size_t i = 0; i < call.Count("X"); ++i) {
    rows.push_back(call.InRows("X", i)->rows);
    values.push_back(call.InRows("X", i)->values);
  }
  call.SetOut("Out", SelectedRows{at::cat(rows), at::cat(values), call.InRows("X")->height});
  return absl::OkStatus();
}

// Rows alone stay rows; with a tensor among them the sum is a tensor.
absl::Status SumOfMany(KernelCall& call) {
  const size_t count = call.Count("X");
  size_t of_rows = 0;
  for (size_t i = 0; i < count; ++i) of_rows += call.InRows("X", i) != nullptr ? 1 : 0;
  if (of_rows == count) return SumOfRows(call);
  torch::Tensor sum;
  for (size_t i = 0; i < count; ++i) {
    const torch::Tensor& x = call.In("X", i);
    if (x.defined()) sum = sum.defined() ? at::add(sum, x) : x;
  }
  for (size_t i = 0; i < count; ++i)
    if (const SelectedRows* rows = call.InRows("X", i)) sum = sum + ToDense(*rows);
  return call.Give(sum);
}

absl::Status GivePlaces(KernelCall& call, const torch::Tensor& places) {
  const bool narrow = call.Int("dtype") == program::CodeOf(program::DataType::kInt32);
  const torch::Tensor typed = places.to(narrow ? torch::kInt32 : torch::kInt64);
  return call.Give(typed.dim() == 0 ? typed.reshape({1}) : typed);
}

absl::Status ArgMax(KernelCall& call) {
  return GivePlaces(call, at::argmax(call.In("X"), call.Int("axis"), call.Bool("keepdims")));
}
absl::Status ArgMin(KernelCall& call) {
  return GivePlaces(call, at::argmin(call.In("X"), call.Int("axis"), call.Bool("keepdims")));
}

absl::Status ArgSort(KernelCall& call) {
  const Lod lod = call.LodOf("X");
  const auto [sorted, places] = at::sort(call.In("X"), /*stable=*/true, call.Int("axis"), call.Bool("descending"));
  call.SetOut("Out", sorted, lod);
  call.SetOut("Indices", places, lod);
  return absl::OkStatus();
}

absl::Status TopK(KernelCall& call) {
  const Lod lod = call.LodOf("X");
  const torch::Tensor& x = call.In("X");
  const int64_t k = call.Has("K") ? static_cast<int64_t>(FirstElement(call.In("K"))) : call.Int("k");
  if (k < 1 || k > x.size(-1))
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", k, " and X is ", TensorText(x), "; want 1 to its last extent"));
  const auto [largest, places] = at::topk(x, k);
  call.SetOut("Out", largest, lod);
  call.SetOut("Indices", places, lod);
  return absl::OkStatus();
}

constexpr KernelRow kReduceKernels[] = {
    {"reduce_sum", Reduce<Sum>},
    {"reduce_mean", Reduce<Mean>},
    {"reduce_max", Reduce<Largest>},
    {"reduce_min", Reduce<Smallest>},
    {"reduce_prod", Reduce<Product>},
    {"reduce_all", Reduce<All>},
    {"reduce_any", Reduce<Any>},
    {"frobenius_norm", Reduce<Frobenius>},
    {"logsumexp", Reduce<LogSumExp>},
    {"mean", MeanOfAll},
    {"sum", SumOfMany, Accepts::kRows},
    {"l1_norm", L1Norm},
    {"squared_l2_norm", SquaredNorm},
    {"arg_max", ArgMax},
    {"arg_min", ArgMin},
    {"argsort", ArgSort},
    {"top_k", TopK},
};

}  // namespace

std::span<const KernelRow> ReduceKernels() { return kReduceKernels; }

}  // namespace regatta::exec
