// Operators that change a tensor's shape and keep its elements, or repeat them, or put others around them.
#include <algorithm>
#include <functional>
#include <numeric>

#include "exec/kernel_table.h"
#include "exec/kernels/integers.h"

namespace regatta::exec {

namespace {

// 0 keeps an extent, one -1 takes what is left.
absl::Status Reshape(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  Integers shape = IntegersOf(call, "Shape", "ShapeTensor", "shape");
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 0) shape[i] = x.size(static_cast<int64_t>(i));
  return call.Give(x.reshape(shape));
}

absl::Status Squeeze(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  Integers axes = call.Ints("axes"), shape;
  for (int64_t& axis : axes) axis += axis < 0 ? x.dim() : 0;
  for (int64_t i = 0; i < x.dim(); ++i) {
    const bool chosen = axes.empty() || std::ranges::find(axes, i) != axes.end();
    if (!chosen || x.size(i) != 1) shape.push_back(x.size(i));
  }
  if (shape.empty()) shape = {1};
  return call.Give(x.reshape(shape));
}

absl::Status Unsqueeze(KernelCall& call) {
  torch::Tensor x = call.In("X");
  for (const int64_t axis : IntegersOf(call, "AxesTensor", "AxesTensorList", "axes")) x = x.unsqueeze(axis);
  return call.Give(x);
}

absl::Status Transpose(KernelCall& call) { return call.Give(call.In("X").permute(call.Ints("axis"))); }

absl::Status Flatten(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const int64_t axis = call.Int("axis");
  if (axis < 0 || axis > x.dim())
    return absl::InvalidArgumentError(absl::StrCat("axis is ", axis, " and X has ", x.dim(), " extents"));
  const auto sizes = x.sizes();
  const int64_t rows = std::accumulate(sizes.begin(), sizes.begin() + axis, int64_t{1}, std::multiplies<>());
  return call.Give(x.reshape({rows, rows == 0 ? 0 : x.numel() / rows}));
}

absl::Status Expand(KernelCall& call) {
  const Integers times = IntegersOf(call, "ExpandTimes", "expand_times_tensor", "expand_times");
  return call.Give(call.In("X").repeat(times));
}

absl::Status ExpandAs(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &target = call.In("target_tensor");
  Integers times;
  for (int64_t i = 0; i < x.dim(); ++i) times.push_back(target.size(i) / std::max<int64_t>(x.size(i), 1));
  return call.Give(x.repeat(times));
}

// Fluid's paddings are before and after the first axis, the second one …; libtorch begins with the last.
absl::Status Pad(KernelCall& call) {
  const Integers& paddings = call.Ints("paddings");
  Integers reversed;
  for (size_t i = paddings.size() / 2; i-- > 0;)
    reversed.insert(reversed.end(), {paddings[2 * i], paddings[2 * i + 1]});
  return call.Give(at::constant_pad_nd(call.In("X"), reversed, call.Float("pad_value")));
}

absl::Status Pad2d(KernelCall& call) {
  const bool last = call.String("data_format") == "NHWC";
  const torch::Tensor x = last ? call.In("X").permute({0, 3, 1, 2}) : call.In("X");
  const Integers p = IntegersOf(call, "Paddings", "", "paddings");  // top, bottom, left, right
  if (p.size() != 4) return absl::InvalidArgumentError("want four paddings: top, bottom, left, right");
  const Integers turned = {p[2], p[3], p[0], p[1]};
  torch::Tensor out;
  if (call.String("mode") == "constant") out = at::constant_pad_nd(x, turned, call.Float("pad_value"));
  if (call.String("mode") == "reflect") out = at::reflection_pad2d(x, turned);
  if (call.String("mode") == "edge") out = at::replication_pad2d(x, turned);
  return call.Give(last ? out.permute({0, 2, 3, 1}) : out);
}

constexpr KernelRow kReshapeKernels[] = {
    {"reshape", Reshape},
    {"reshape2", Reshape},
    {"squeeze", Squeeze},
    {"squeeze2", Squeeze},
    {"unsqueeze", Unsqueeze},
    {"unsqueeze2", Unsqueeze},
    {"transpose", Transpose},
    {"transpose2", Transpose},
    {"flatten", Flatten},
    {"flatten2", Flatten},
    {"expand", Expand},
    {"expand_as", ExpandAs},
    {"pad", Pad},
    {"pad2d", Pad2d},
};

}  // namespace

std::span<const KernelRow> ReshapeKernels() { return kReshapeKernels; }

}  // namespace regatta::exec
