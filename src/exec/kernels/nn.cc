// Layers of neural networks that are one operator: convolutions, pooling, normalisations, dropout.
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "exec/kernel_table.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

absl::Status CosSim(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &y = call.In("Y");
  const torch::Tensor x_norm = at::sqrt((x * x).sum(1, true)), y_norm = at::sqrt((y * y).sum(1, true));
  call.SetOut("XNorm", x_norm);
  call.SetOut("YNorm", y_norm);
  return call.Give((x * y).sum(1, true) / (x_norm * y_norm));
}

// A training step drops elements; in a test they all count, as often as they do in training.
absl::Status Dropout(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const double dropped = call.Float("dropout_prob");
  const bool upscale = call.String("dropout_implementation") == "upscale_in_train";
  if (call.Bool("is_test")) return call.Give(upscale ? at::mul(x, 1) : x * (1 - dropped));
  const torch::Tensor mask = at::empty(x.sizes(), x.options()).bernoulli_(1 - dropped, call.Generator());
  if (call.Wants("Mask")) call.SetOut("Mask", mask.to(torch::kUInt8));
  return call.Give(upscale && dropped < 1 ? x * (mask / (1 - dropped)) : x * mask);
}

// Channels second, as libtorch has them.
torch::Tensor ChannelsSecond(const torch::Tensor& x, bool last) { return last && x.dim() > 2 ? x.movedim(-1, 1) : x; }
torch::Tensor ChannelsBack(const torch::Tensor& x, bool last) { return last && x.dim() > 2 ? x.movedim(1, -1) : x; }

// The moving variance is that of the batch as it is, not of what it was drawn from.
absl::Status BatchNorm(KernelCall& call) {
  const bool last = call.String("data_layout") == "NHWC";
  const torch::Tensor x = ChannelsSecond(call.In("X"), last);
  const torch::Tensor &scale = call.In("Scale"), &bias = call.In("Bias");
  const double epsilon = call.Float("epsilon");
  const bool global = call.Bool("use_global_stats") || (call.Bool("is_test") && !call.Bool("trainable_statistics"));
  if (global) {
    const torch::Tensor y =
        at::batch_norm(x, scale, bias, call.In("Mean"), call.In("Variance"), false, 0, epsilon, false);
    call.Update("Mean", "MeanOut");  // as they are
    call.Update("Variance", "VarianceOut");
    return call.Give("Y", ChannelsBack(y, last), "X");
  }
  const auto [y, mean, inverse] = at::native_batch_norm(x, scale, bias, {}, {}, true, 0, epsilon);
  {
    const torch::NoGradGuard no_record;
    const double momentum =
        call.Has("MomentumTensor") ? FirstElement(call.In("MomentumTensor")) : call.Float("momentum");
    const torch::Tensor variance = 1 / (inverse * inverse) - epsilon;
    call.Update("Mean", "MeanOut").mul_(momentum).add_(mean, 1 - momentum);
    call.Update("Variance", "VarianceOut").mul_(momentum).add_(variance, 1 - momentum);
  }
  call.SetOut("SavedMean", mean.detach());
  call.SetOut("SavedVariance", inverse.detach());
  return call.Give("Y", ChannelsBack(y, last), "X");
}

torch::Tensor Shaped(const torch::Tensor& tensor, at::IntArrayRef shape) {
  return tensor.defined() ? tensor.reshape(shape) : tensor;
}

absl::Status LayerNorm(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const int64_t axis = call.Int("begin_norm_axis");
  if (axis < 1 || axis >= x.dim())
    return absl::InvalidArgumentError(absl::StrCat("begin_norm_axis is ", axis, " and X is ", TensorText(x),
                                                   "; want at least 1 and less than the number of its extents"));
  const at::IntArrayRef shape = x.sizes().slice(static_cast<size_t>(axis));
  const auto [y, mean, inverse] = at::native_layer_norm(x, shape, Shaped(call.In("Scale"), shape),
                                                        Shaped(call.In("Bias"), shape), call.Float("epsilon"));
  if (call.Wants("Mean")) call.SetOut("Mean", mean.detach().reshape({-1}));
  if (call.Wants("Variance"))
    call.SetOut("Variance", (1 / (inverse * inverse) - call.Float("epsilon")).detach().reshape({-1}));
  return call.Give("Y", y, "X");
}

absl::Status GroupNorm(KernelCall& call) {
  const bool last = call.String("data_layout") == "NHWC";
  const torch::Tensor y = at::group_norm(ChannelsSecond(call.In("X"), last), call.Int("groups"), call.In("Scale"),
                                         call.In("Bias"), call.Float("epsilon"), false);
  return call.Give("Y", ChannelsBack(y, last), "X");
}

// What is put around height and width: {top, bottom, left, right}.
std::vector<int64_t> PaddingsOf(const KernelCall& call, const torch::Tensor& x, at::IntArrayRef kernel) {
  const std::string& algorithm = call.String("padding_algorithm");
  const std::vector<int64_t>&given = call.Ints("paddings"), &strides = call.Ints("strides");
  if (algorithm == "VALID") return {0, 0, 0, 0};
  if (algorithm == "EXPLICIT") {
    if (given.size() == 4) return given;
    return {given.at(0), given.at(0), given.at(1), given.at(1)};
  }
  std::vector<int64_t> paddings;
  for (size_t i = 0; i < 2; ++i) {  // SAME: as many outputs as strides fit in
    const int64_t extent = x.size(static_cast<int64_t>(i) + 2), outputs = (extent + strides[i] - 1) / strides[i];
    const int64_t all = std::max<int64_t>((outputs - 1) * strides[i] + kernel[i] - extent, 0);
    paddings.insert(paddings.end(), {all / 2, all - all / 2});
  }
  return paddings;
}

bool AreEven(const std::vector<int64_t>& p) { return p[0] == p[1] && p[2] == p[3]; }

absl::Status Conv2d(KernelCall& call) {
  const bool last = call.String("data_format") == "NHWC";
  torch::Tensor x = ChannelsSecond(call.In("Input"), last);
  const torch::Tensor &filter = call.In("Filter"), &bias = call.In("Bias");
  const std::vector<int64_t>& dilations = call.Ints("dilations");
  const std::vector<int64_t> p =
      PaddingsOf(call, x, {dilations[0] * (filter.size(2) - 1) + 1, dilations[1] * (filter.size(3) - 1) + 1});
  std::vector<int64_t> both = {p[0], p[2]};
  if (!AreEven(p)) {
    x = at::constant_pad_nd(x, {p[2], p[3], p[0], p[1]}, 0);
    both = {0, 0};
  }
  const torch::Tensor y = at::conv2d(x, filter, bias, call.Ints("strides"), both, dilations, call.Int("groups"));
  return call.Give("Output", ChannelsBack(y, last), "Input");
}

absl::Status Pool2d(KernelCall& call) {
  const bool last = call.String("data_format") == "NHWC";
  torch::Tensor x = ChannelsSecond(call.In("X"), last);
  std::vector<int64_t> kernel = call.Ints("ksize");
  const bool max = call.String("pooling_type") == "max", global = call.Bool("global_pooling");
  if (call.Bool("adaptive")) {
    const torch::Tensor y = max ? std::get<0>(at::adaptive_max_pool2d(x, kernel)) : at::adaptive_avg_pool2d(x, kernel);
    return call.Give(ChannelsBack(y, last));
  }
  if (global) kernel = {x.size(2), x.size(3)};
  std::vector<int64_t> p = global ? std::vector<int64_t>{0, 0, 0, 0} : PaddingsOf(call, x, kernel);
  if (!AreEven(p)) {
    if (!max)
      return absl::UnimplementedError("pool_type='avg' with uneven paddings is not in this version; pad2d first");
    x = at::constant_pad_nd(x, {p[2], p[3], p[0], p[1]}, -std::numeric_limits<double>::infinity());
    p = {0, 0, 0, 0};
  }
  const std::vector<int64_t> both = {p[0], p[2]};
  const std::vector<int64_t>& strides = call.Ints("strides");
  const bool ceil = call.Bool("ceil_mode");
  const torch::Tensor y = max ? at::max_pool2d(x, kernel, strides, both, 1, ceil)
                              : at::avg_pool2d(x, kernel, strides, both, ceil, !call.Bool("exclusive"));
  return call.Give(ChannelsBack(y, last));
}

// out[n, k] = x[n] · weight[k] · y[n]
absl::Status BilinearProduct(KernelCall& call) {
  torch::Tensor out = at::einsum("ni,kij,nj->nk", {call.In("X"), call.In("Weight"), call.In("Y")});
  if (call.Has("Bias")) out = out + call.In("Bias").reshape({1, -1});
  return call.Give(out);
}

// Forward the first two columns become logarithms of shows and clicks, or are left out. Backward they get the shows and
// clicks themselves, which a table adds to its counts.
struct ShowAndClick : torch::autograd::Function<ShowAndClick> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& counts, bool keeps) {
    context->save_for_backward({counts});
    context->saved_data["keeps"] = keeps;
    if (!keeps) return x.slice(1, 2).clone();
    const torch::Tensor shows = at::log(x.narrow(1, 0, 1) + 1), clicks = at::log(x.narrow(1, 1, 1) + 1) - shows;
    return at::cat({shows, clicks, x.slice(1, 2)}, 1);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::Tensor counts = context->get_saved_variables()[0], &given = gradients[0];
    const torch::Tensor rest = context->saved_data["keeps"].toBool() ? given.slice(1, 2) : given;
    return {at::cat({counts, rest}, 1), torch::Tensor(), torch::Tensor()};
  }
};

// CVM has a row for each sequence of X, or for each of its rows.
absl::Status Cvm(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  torch::Tensor counts = call.In("CVM").detach().to(x.scalar_type());
  if (x.dim() != 2 || x.size(1) < 2 || counts.dim() != 2 || counts.size(1) != 2)
    return absl::InvalidArgumentError(absl::StrCat("X is ", TensorText(x), " and CVM is ", TensorText(counts),
                                                   "; want [n, 2 or more] and [n, 2]: show and click"));
  if (const Lod& lod = call.LodOf("X"); !lod.empty() && static_cast<int64_t>(lod.last().size()) == counts.size(0) + 1) {
    const torch::Tensor ends = at::tensor(at::ArrayRef<int64_t>(lod.last()), torch::kInt64);
    counts = at::repeat_interleave(counts, ends.slice(0, 1) - ends.slice(0, 0, -1), 0);
  }
  if (counts.size(0) != x.size(0)) return absl::InvalidArgumentError("want a row of CVM for each row of X");
  return call.Give("Y", ShowAndClick::apply(x, counts, call.Bool("use_cvm")), "X");
}

constexpr KernelRow kNnKernels[] = {
    {"cos_sim", CosSim},       {"cvm", Cvm},
    {"conv2d", Conv2d},        {"depthwise_conv2d", Conv2d},
    {"pool2d", Pool2d},        {"batch_norm", BatchNorm},
    {"layer_norm", LayerNorm}, {"group_norm", GroupNorm},
    {"dropout", Dropout},      {"bilinear_tensor_product", BilinearProduct},
};

}  // namespace

std::span<const KernelRow> NnKernels() { return kNnKernels; }

}  // namespace regatta::exec
