// Operators that move, cut, join and pick elements, and those that ask for a tensor's shape.
#include <algorithm>
#include <numeric>

#include "exec/kernel_table.h"
#include "exec/kernels/integers.h"
#include "exec/kernels/row_sums.h"
#include "exec/tensor_type.h"
#include "program/data_type.h"

namespace regatta::exec {

namespace {

int64_t AxisOf(const KernelCall& call, int64_t rank) {
  const int64_t axis = call.Has("AxisTensor") ? IntegersOf(call.In("AxisTensor")).at(0) : call.Int("axis");
  return axis < 0 ? axis + rank : axis;
}

// The LoD belongs to rows: it stays unless they are joined.
absl::Status Concat(KernelCall& call) {
  const std::vector<torch::Tensor> parts = call.Ins("X");
  const int64_t axis = AxisOf(call, parts[0].dim());
  call.SetOut("Out", at::cat(parts, axis), axis == 0 ? Lod() : Lod(call.LodOf("X")));
  return absl::OkStatus();
}

absl::Status SplitParts(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const int64_t axis = AxisOf(call, x.dim()), extent = x.size(axis), count = call.Int("num");
  Integers sections = IntegersOf(call, "", "SectionsTensorList", "sections");
  if (sections.empty()) {
    if (count < 1 || extent % count != 0)
      return absl::InvalidArgumentError(
          absl::StrCat("num is ", count, " and axis ", axis, " of X is ", extent, "; want a divisor of it"));
    sections.assign(static_cast<size_t>(count), extent / count);
  }
  const auto open = std::ranges::find(sections, -1);
  if (open != sections.end()) *open = extent - (std::accumulate(sections.begin(), sections.end(), int64_t{0}) + 1);
  const std::vector<torch::Tensor> parts = at::split_with_sizes(x, sections, axis);
  const Lod lod = axis == 0 ? Lod() : Lod(call.LodOf("X"));
  for (size_t i = 0; i < parts.size(); ++i) call.SetOut("Out", parts[i], lod, i);
  return absl::OkStatus();
}

absl::Status Stack(KernelCall& call) {
  call.SetOut("Y", at::stack(call.Ins("X"), call.Int("axis")));
  return absl::OkStatus();
}

absl::Status GiveEach(KernelCall& call, std::string_view slot) {
  const std::vector<torch::Tensor> parts = at::unbind(call.In("X"), call.Int("axis"));
  for (size_t i = 0; i < parts.size(); ++i)
    call.SetOut(slot, parts[i].dim() == 0 ? parts[i].reshape({1}) : parts[i], {}, i);
  return absl::OkStatus();
}
absl::Status Unstack(KernelCall& call) { return GiveEach(call, "Y"); }
absl::Status Unbind(KernelCall& call) { return GiveEach(call, "Out"); }

// Elements begin, begin + stride, … before end; negative ones count from behind.
torch::Tensor CutAxis(const torch::Tensor& x, int64_t axis, int64_t begin, int64_t end, int64_t stride) {
  const int64_t extent = x.size(axis);
  begin += begin < 0 ? extent : 0;
  end += end < 0 && end >= -extent ? extent : 0;
  if (stride > 0) {
    begin = std::clamp<int64_t>(begin, 0, extent), end = std::clamp<int64_t>(end, begin, extent);
    return at::slice(x, axis, begin, end, stride);
  }
  begin = std::clamp<int64_t>(begin, -1, extent - 1), end = std::clamp<int64_t>(end, -1, begin);
  return x.index_select(axis, at::arange(begin, end, stride, torch::kInt64));
}

absl::Status Slice(KernelCall& call) {
  torch::Tensor out = call.In("Input");
  const Integers axes = call.Ints("axes");
  const Integers begins = IntegersOf(call, "StartsTensor", "StartsTensorList", "starts");
  const Integers ends = IntegersOf(call, "EndsTensor", "EndsTensorList", "ends");
  Integers strides = IntegersOf(call, "StridesTensor", "StridesTensorList", "strides");
  if (strides.empty()) strides.assign(axes.size(), 1);
  if (begins.size() != axes.size() || ends.size() != axes.size() || strides.size() != axes.size())
    return absl::InvalidArgumentError(absl::StrCat("there are ", axes.size(), " axes, ", begins.size(), " starts, ",
                                                   ends.size(), " ends; want as many of each"));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (strides[i] == 0) return absl::InvalidArgumentError("a stride is 0; want another number");
    out = CutAxis(out, axes[i], begins[i], ends[i], strides[i]);
  }
  Integers shape = out.sizes().vec(), dropped = call.Ints("decrease_axis");
  std::ranges::sort(dropped, std::greater<>());
  for (const int64_t axis : dropped) {
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      return absl::InvalidArgumentError(absl::StrCat("decrease_axis has ", axis, ", which is no axis of the slice"));
    shape.erase(shape.begin() + axis);
  }
  if (!dropped.empty()) out = out.reshape(shape.empty() ? Integers{1} : shape);
  return call.Give("Out", out, "Input");
}

torch::Tensor PlacesIn(const KernelCall& call, std::string_view slot) {
  return call.In(slot).to(torch::kInt64).reshape({-1});
}

absl::Status Gather(KernelCall& call) {
  return call.Give("Out", call.In("X").index_select(0, PlacesIn(call, "Index")), "Index");
}

// The last extent of an index holds places along the first axes.
std::vector<c10::optional<torch::Tensor>> PlacesOfNd(const torch::Tensor& index) {
  std::vector<c10::optional<torch::Tensor>> places;
  for (const torch::Tensor& each : at::unbind(index.to(torch::kInt64), -1)) places.emplace_back(each);
  return places;
}

absl::Status GatherNd(KernelCall& call) {
  c10::List<c10::optional<torch::Tensor>> places;
  for (const auto& each : PlacesOfNd(call.In("Index"))) places.push_back(each);
  call.SetOut("Out", at::index(call.In("X"), places));
  return absl::OkStatus();
}

// Rows are replaced, or set to 0 and then added to.
absl::Status Scatter(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &updates = call.In("Updates");
  const torch::Tensor places = PlacesIn(call, "Ids");
  if (call.Bool("overwrite")) return call.Give(x.index_copy(0, places, updates));
  return call.Give(x.index_fill(0, places, 0).index_add(0, places, updates));
}

absl::Status ScatterNdAdd(KernelCall& call) {
  c10::List<c10::optional<torch::Tensor>> places;
  for (const auto& each : PlacesOfNd(call.In("Index"))) places.push_back(each);
  return call.Give(at::index_put(call.In("X"), places, call.In("Updates"), /*accumulate=*/true));
}

absl::Status IndexSelect(KernelCall& call) {
  return call.Give(call.In("X").index_select(call.Int("dim"), PlacesIn(call, "Index")));
}
absl::Status IndexSample(KernelCall& call) {
  return call.Give(call.In("X").gather(1, call.In("Index").to(torch::kInt64)));
}

// `shape`: of the classes' tensor.
absl::Status GiveOneHot(KernelCall& call, const Integers& shape) {
  const torch::Tensor classes = call.In("X").to(torch::kInt64).reshape(shape).unsqueeze(-1);
  const int64_t depth = call.Has("depth_tensor") ? IntegersOf(call.In("depth_tensor")).at(0) : call.Int("depth");
  if (depth < 1) return absl::InvalidArgumentError(absl::StrCat("depth is ", depth, "; want 1 or more"));
  const bool fits =
      classes.numel() == 0 || (classes.min().item<int64_t>() >= 0 && classes.max().item<int64_t>() < depth);
  if (!fits && !call.Bool("allow_out_of_range"))
    return absl::InvalidArgumentError(
        absl::StrCat("X has values outside 0 … ", depth - 1, "; make depth larger, or set allow_out_of_range"));
  const torch::Tensor hot = classes == at::arange(depth, torch::kInt64);
  return call.Give(hot.to(ScalarTypeOfCode(call.Int("dtype"))));
}
absl::Status OneHot(KernelCall& call) {
  Integers shape = call.In("X").sizes().vec();
  if (!shape.empty()) shape.pop_back();
  return GiveOneHot(call, shape);
}
absl::Status OneHotV2(KernelCall& call) { return GiveOneHot(call, call.In("X").sizes().vec()); }

absl::Status ShapeOfInput(KernelCall& call) {
  const Value* value = call.InValue("Input");
  const SelectedRows* rows = value->rows();
  Integers shape = rows ? rows->values.sizes().vec() : call.In("Input").sizes().vec();
  if (rows) shape[0] = rows->height;
  call.SetOut("Out", at::tensor(at::ArrayRef<int64_t>(shape), torch::kInt32));
  return absl::OkStatus();
}
absl::Status SizeOfInput(KernelCall& call) {
  call.SetOut("Out", at::full({1}, call.In("Input").numel(), torch::kInt64));
  return absl::OkStatus();
}

absl::Status Cast(KernelCall& call) { return call.Give(call.In("X").to(ScalarTypeOfCode(call.Int("out_dtype")))); }

absl::Status Assign(KernelCall& call) {
  if (const SelectedRows* rows = call.InRows("X")) {
    call.SetOut("Out", SelectedRows(*rows));
    return absl::OkStatus();
  }
  return call.Give(call.In("X").clone());
}

absl::Status Where(KernelCall& call) {
  return call.Give(at::where(call.In("Condition").to(torch::kBool), call.In("X"), call.In("Y")));
}
absl::Status WhereIndex(KernelCall& call) {
  call.SetOut("Out", at::nonzero(call.In("Condition")));
  return absl::OkStatus();
}

// Y, with as many elements behind it as X has more.
absl::Status PadLike(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &y = call.In("Y");
  Integers reversed;
  for (int64_t i = x.dim(); i-- > 0;) reversed.insert(reversed.end(), {0, x.size(i) - y.size(i)});
  return call.Give(at::constant_pad_nd(y, reversed, call.Float("pad_value")));
}

absl::Status Reverse(KernelCall& call) { return call.Give(call.In("X").flip(call.Ints("axis"))); }

// Row i of the candidate that Ids[i] names.
absl::Status Multiplex(KernelCall& call) {
  const torch::Tensor candidates = at::stack(call.Ins("X"));
  const torch::Tensor chosen = PlacesIn(call, "Ids");
  c10::List<c10::optional<torch::Tensor>> places;
  places.push_back(chosen);
  places.push_back(at::arange(chosen.size(0), torch::kInt64));
  return call.Give(at::index(candidates, places));
}

absl::Status Normalize(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const torch::Tensor norm = at::sqrt((x * x).sum(call.Int("axis"), /*keepdim=*/true) + call.Float("epsilon"));
  if (call.Wants("Norm")) call.SetOut("Norm", norm);
  return call.Give(x / norm);
}

absl::Status ShardIndex(KernelCall& call) {
  const int64_t count = call.Int("index_num"), shards = call.Int("nshards"), shard = call.Int("shard_id");
  if (shards < 1) return absl::InvalidArgumentError(absl::StrCat("nshards is ", shards, "; want 1 or more"));
  const int64_t size = (count + shards - 1) / shards;
  const torch::Tensor& x = call.In("X");
  const torch::Tensor here = at::div(x, size, "floor") == shard;
  return call.Give(at::where(here, at::remainder(x, size), at::full_like(x, call.Int("ignore_value"))));
}

// In the order in which they first occur.
absl::Status Unique(KernelCall& call) {
  const torch::Tensor x = call.In("X").reshape({-1});
  const auto [sorted, places, counts] = at::_unique2(x, /*sorted=*/true, /*return_inverse=*/true, true);
  const torch::Tensor reversed = at::arange(x.size(0) - 1, -1, -1, torch::kInt64);
  const torch::Tensor first = at::zeros({sorted.size(0)}, torch::kInt64).index_copy(0, places.flip(0), reversed);
  const torch::Tensor order = at::argsort(first);
  const torch::Tensor rank = at::empty_like(order).index_copy(0, order, at::arange(order.size(0), torch::kInt64));
  const torch::ScalarType type = ScalarTypeOfCode(call.Int("dtype"));
  call.SetOut("Out", sorted.index_select(0, order));
  call.SetOut("Index", rank.index_select(0, places).to(type));
  call.SetOut("Count", counts.index_select(0, order).to(type));
  return absl::OkStatus();
}

absl::Status Diag(KernelCall& call) {
  call.SetOut("Out", at::diag(call.In("Diagonal").reshape({-1})));
  return absl::OkStatus();
}

// A class of each row, by its probabilities.
absl::Status SamplingId(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const torch::Tensor drawn =
      at::empty({x.size(0), 1}, x.options()).uniform_(call.Float("min"), call.Float("max"), call.Generator());
  const torch::Tensor place = (x.cumsum(1) <= drawn).sum(1);
  call.SetOut("Out", at::clamp(place, 0, x.size(1) - 1));
  return absl::OkStatus();
}

absl::Status MergeSelectedRows(KernelCall& call) {
  const SelectedRows* rows = call.InRows("X");
  if (rows == nullptr) return call.Give(call.In("X"));
  call.SetOut("Out", MergeRows(*rows));
  return absl::OkStatus();
}

// The rows alone, in their order: what merged rows hold, without those that are not there.
absl::Status TensorOfRows(KernelCall& call) {
  const SelectedRows* rows = call.InRows("X");
  call.SetOut("Out", rows ? rows->values : call.In("X"));
  return absl::OkStatus();
}

constexpr KernelRow kTensorKernels[] = {
    {"concat", Concat},
    {"split", SplitParts},
    {"stack", Stack},
    {"unstack", Unstack},
    {"unbind", Unbind},
    {"slice", Slice},
    {"strided_slice", Slice},
    {"gather", Gather},
    {"gather_nd", GatherNd},
    {"scatter", Scatter},
    {"scatter_nd_add", ScatterNdAdd},
    {"index_select", IndexSelect},
    {"index_sample", IndexSample},
    {"one_hot", OneHot},
    {"one_hot_v2", OneHotV2},
    {"shape", ShapeOfInput, Accepts::kRows},
    {"size", SizeOfInput},
    {"cast", Cast},
    {"assign", Assign, Accepts::kRows},
    {"where", Where},
    {"where_index", WhereIndex},
    {"pad_constant_like", PadLike},
    {"reverse", Reverse},
    {"multiplex", Multiplex},
    {"norm", Normalize},
    {"shard_index", ShardIndex},
    {"unique", Unique},
    {"unique_with_counts", Unique},
    {"diag", Diag},
    {"sampling_id", SamplingId},
    {"merge_selected_rows", MergeSelectedRows, Accepts::kRows},
    {"get_tensor_from_selected_rows", TensorOfRows, Accepts::kRows},
};

}  // namespace

std::span<const KernelRow> TensorKernels() { return kTensorKernels; }

}  // namespace regatta::exec
