// Operators that put tensors together, cut them, and pick or convert elements.
#include <algorithm>
#include <numeric>
#include <set>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// Equal but for the axis, along which they are added up.
absl::Status InferConcat(InferContext& context) {
  Shape out;
  int lod_level = 0;
  for (size_t i = 0; i < context.Count("X"); ++i) {
    const Variable& x = context.In("X", i);
    lod_level = std::max(lod_level, x.lod_level);
    if (x.shape.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("axis"), x.shape.size()));
    if (out.empty()) {
      out = x.shape;
      continue;
    }
    bool fits = out.size() == x.shape.size();
    for (size_t j = 0; fits && j < out.size(); ++j) {
      if (j == axis) {
        out[j] = out[j] < 0 || x.shape[j] < 0 ? kUnknownExtent : Plus(out[j], x.shape[j]);
      } else {
        fits = MayEqual(out[j], x.shape[j]);
        out[j] = std::max(out[j], x.shape[j]);
      }
    }
    if (fits) continue;
    return absl::InvalidArgumentError(absl::StrCat("X[0] is ", ShapeText(context.ShapeOf("X")), " and X[", i, "] is ",
                                                   ShapeText(x.shape), "; want equal extents but for axis ", axis));
  }
  if (context.Has("AxisTensor")) out.assign(out.size(), kUnknownExtent);
  context.Set("Out", out, context.In("X").dtype, lod_level);
  return absl::OkStatus();
}

// `num` equal parts, or those of `sections`, one of which may be -1: the rest.
absl::Status InferSplit(InferContext& context) {
  Shape part = context.ShapeOf("X");
  if (part.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("axis"), part.size()));
  const int64_t whole = part[axis];
  std::vector<int64_t> sections = context.attributes().Ints("sections");
  const int64_t parts = context.attributes().Int("num");
  if (sections.empty()) {
    if (parts < 1 || (whole > 0 && whole % parts != 0)) {
      return context.Refuse({"X"}, absl::StrCat("its axis ", axis, " cannot be split into ", parts,
                                                " equal parts; give the sizes of the parts instead"));
    }
    sections.assign(context.OutputCount("Out"), whole > 0 ? whole / parts : kUnknownExtent);
  }
  if (sections.size() != context.OutputCount("Out")) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", sections.size(), " parts and ",
                                                   context.OutputCount("Out"), " outputs; want as many"));
  }
  if (const auto rest = std::ranges::find(sections, -1); rest != sections.end() && whole > 0)
    *rest = whole - (std::accumulate(sections.begin(), sections.end(), int64_t{0}) + 1);
  for (size_t i = 0; i < sections.size(); ++i) {
    part[axis] = sections[i];
    context.SetAt("Out", i, part, context.In("X").dtype, context.In("X").lod_level);
  }
  return absl::OkStatus();
}

absl::Status InferStack(InferContext& context) {
  Shape out = context.ShapeOf("X");
  for (size_t i = 0; i < context.Count("X"); ++i) {
    const Shape& x = context.ShapeOf("X", i);
    if (x.empty() || std::equal(out.begin(), out.end(), x.begin(), x.end(), MayEqual)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("X[0] is ", ShapeText(out), " and X[", i, "] is ", ShapeText(x), "; want one shape for all"));
  }
  ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("axis"), out.size() + 1));
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<int64_t>(context.Count("X")));
  context.Set("Y", out, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferParts(InferContext& context, std::string_view output) {
  Shape out = context.ShapeOf("X");
  if (out.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("axis"), out.size()));
  if (!MayEqual(out[axis], static_cast<int64_t>(context.OutputCount(output))))
    return context.Refuse(
        {"X"}, absl::StrCat("there are ", context.OutputCount(output), " outputs; want one for each of axis ", axis));
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  if (out.empty()) out = {1};
  for (size_t i = 0; i < context.OutputCount(output); ++i) context.SetAt(output, i, out, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferUnstack(InferContext& context) { return InferParts(context, "Y"); }
absl::Status InferUnbind(InferContext& context) { return InferParts(context, "Out"); }

// How many elements a slice of [0, extent) has.
int64_t SliceCount(int64_t extent, int64_t start, int64_t end, int64_t stride) {
  if (extent < 0) return kUnknownExtent;
  const auto inside = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp(at < 0 ? at + extent : at, low, high);
  };
  if (stride > 0) {
    const int64_t from = inside(start, 0, extent), to = inside(end, 0, extent);
    return to > from ? (to - from + stride - 1) / stride : 0;
  }
  const int64_t from = inside(start, -1, extent - 1), to = end < -extent ? -1 : inside(end, -1, extent - 1);
  return from > to ? (from - to - stride - 1) / -stride : 0;
}

absl::Status InferSlice(InferContext& context) {
  const Variable& input = context.In("Input");
  const Attributes& attributes = context.attributes();
  const std::vector<int64_t>&axes = attributes.Ints("axes"), &starts = attributes.Ints("starts"),
        &ends = attributes.Ints("ends"), &strides = attributes.Ints("strides");
  Shape out = input.shape;
  if (out.empty()) return absl::OkStatus();
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "Input", axes[i], out.size()));
    const int64_t stride = i < strides.size() ? strides[i] : 1;
    if (i >= starts.size() || i >= ends.size()) {
      out[axis] = kUnknownExtent;  // tensors give them
      continue;
    }
    if (stride == 0) return context.Refuse({"Input"}, "a stride is 0; want any other number");
    out[axis] = SliceCount(out[axis], starts[i], ends[i], stride);
    if (out[axis] == 0)
      return context.Refuse({"Input"}, absl::StrCat("nothing is left of axis ", axis, " from ", starts[i], " to ",
                                                    ends[i], "; want a start before the end"));
  }
  std::set<size_t> gone;
  for (const int64_t given : attributes.Ints("decrease_axis")) {
    ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "Input", given, out.size()));
    gone.insert(axis);
  }
  for (auto axis = gone.rbegin(); axis != gone.rend(); ++axis)
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(*axis));
  if (out.empty()) out = {1};
  const bool rows_stay = !gone.contains(0) && std::ranges::find(axes, 0) == axes.end();
  context.Set("Out", out, input.dtype, rows_stay ? input.lod_level : 0);
  return absl::OkStatus();
}

// The rows of X that Index names.
absl::Status InferGather(InferContext& context) {
  RETURN_IF_ERROR(WantIntegers(context, "Index"));
  Shape out = context.ShapeOf("X");
  const Shape& index = context.ShapeOf("Index");
  if (out.empty() || index.empty()) return absl::OkStatus();
  if (index.size() > 2 || (index.size() == 2 && !MayEqual(index[1], 1)))
    return context.Refuse({"Index"}, "want [n] or [n, 1]");
  out[0] = index[0];
  context.Set("Out", out, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferGatherNd(InferContext& context) {
  RETURN_IF_ERROR(WantIntegers(context, "Index"));
  const Shape &x = context.ShapeOf("X"), &index = context.ShapeOf("Index");
  if (x.empty() || index.empty()) return absl::OkStatus();
  const int64_t depth = index.back();
  if (depth < 0 || depth > static_cast<int64_t>(x.size()))
    return context.Refuse({"X", "Index"},
                          "the last extent of Index says how many axes of X it names; want one of them at most");
  Shape out(index.begin(), index.end() - 1);
  out.insert(out.end(), x.begin() + depth, x.end());
  if (out.empty()) out = {1};
  context.Set("Out", out, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferOneHotOf(InferContext& context, Shape out) {
  RETURN_IF_ERROR(WantIntegers(context, "X"));
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "dtype"));
  out.push_back(context.Has("depth_tensor") ? kUnknownExtent : context.attributes().Int("depth"));
  context.Set("Out", out, dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferOneHot(InferContext& context) {
  Shape out = context.ShapeOf("X");
  if (!out.empty() && !MayEqual(out.back(), 1))
    return context.Refuse({"X"}, "the last extent must be 1 (layers.reshape); fluid.one_hot takes ids without it");
  if (!out.empty()) out.pop_back();
  return InferOneHotOf(context, out);
}

absl::Status InferOneHotV2(InferContext& context) { return InferOneHotOf(context, context.ShapeOf("X")); }

absl::Status InferShapeOf(InferContext& context) {
  const Shape& input = context.ShapeOf("Input");
  context.Set("Out", {input.empty() ? kUnknownExtent : static_cast<int64_t>(input.size())}, DataType::kInt32);
  return absl::OkStatus();
}

absl::Status InferSize(InferContext& context) {
  context.Set("Out", {1}, DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferCast(InferContext& context) {
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "out_dtype"));
  context.SetLike("Out", "X");
  context.Set("Out", Shape(context.ShapeOf("X")), dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferWhere(InferContext& context) {
  context.SetLike("Out", "X");
  return absl::OkStatus();
}

absl::Status InferWhereIndex(InferContext& context) {
  const Shape& condition = context.ShapeOf("Condition");
  context.Set("Out", {kUnknownExtent, static_cast<int64_t>(std::max<size_t>(condition.size(), 1))}, DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferMultiplex(InferContext& context) {
  RETURN_IF_ERROR(WantIntegers(context, "Ids"));
  return OutLikeX(context);
}

absl::Status InferHash(InferContext& context) {
  RETURN_IF_ERROR(WantIntegers(context, "X"));
  Shape out = context.ShapeOf("X");
  if (out.empty()) return absl::OkStatus();
  out.back() = context.attributes().Int("num_hash");
  out.push_back(1);
  context.Set("Out", out, DataType::kInt64, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferUnique(InferContext& context) {
  const Variable& x = context.In("X");
  context.Set("Out", {kUnknownExtent}, x.dtype);
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "dtype"));
  context.Set("Index", Shape(x.shape), dtype);
  context.Set("Count", {kUnknownExtent}, dtype);
  return absl::OkStatus();
}

absl::Status InferDiag(InferContext& context) {
  const Shape& diagonal = context.ShapeOf("Diagonal");
  if (!diagonal.empty()) context.Set("Out", {diagonal[0], diagonal[0]}, context.In("Diagonal").dtype);
  return absl::OkStatus();
}

absl::Status InferIndexSelect(InferContext& context) {
  Shape out = context.ShapeOf("X");
  const Shape& index = context.ShapeOf("Index");
  if (out.empty() || index.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("dim"), out.size()));
  out[axis] = index[0];
  context.Set("Out", out, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferIndexSample(InferContext& context) {
  context.Set("Out", Shape(context.ShapeOf("Index")), context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferSamplingId(InferContext& context) {
  const Shape& x = context.ShapeOf("X");
  if (!x.empty()) context.Set("Out", {x[0]}, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferNorm(InferContext& context) {
  context.SetLike("Out", "X");
  Shape norm = context.ShapeOf("X");
  if (norm.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("axis"), norm.size()));
  norm[axis] = 1;
  context.Set("Norm", norm, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferRowsAsTensor(InferContext& context) {
  context.SetLike("Out", "X");
  context.SetKind("Out", VariableKind::kLodTensor);
  return absl::OkStatus();
}

absl::Status InferShuffle(InferContext& context) {
  context.SetLike("Out", "X");
  context.Set("ShuffleIdx", {kUnknownExtent}, DataType::kInt64);
  context.Set("SeedOut", {1}, DataType::kInt64);
  return absl::OkStatus();
}

constexpr char kSlice[] = "axes:ints starts:ints=[] ends:ints=[] infer_flags:ints=[] decrease_axis:ints=[]";
constexpr char kStridedSlice[] =
    "axes:ints starts:ints=[] ends:ints=[] strides:ints=[] infer_flags:ints=[] decrease_axis:ints=[]";

constexpr OpRow kTensorRows[] = {
    {"concat", "X* AxisTensor?", "Out", "axis:int=0", InferConcat},
    {"split", "X AxisTensor? SectionsTensorList*?", "Out*", "sections:ints=[] num:int=0 axis:int=0", InferSplit},
    {"stack", "X*", "Y", "axis:int=0", InferStack},
    {"unstack", "X", "Y*", "axis:int=0 num:int=0", InferUnstack},
    {"unbind", "X", "Out*", "axis:int=0", InferUnbind},
    {"slice", "Input StartsTensor? EndsTensor? StartsTensorList*? EndsTensorList*?", "Out", kSlice, InferSlice},
    {"strided_slice",
     "Input StartsTensor? EndsTensor? StridesTensor? StartsTensorList*? EndsTensorList*? StridesTensorList*?", "Out",
     kStridedSlice, InferSlice},
    {"gather", "X Index", "Out", "overwrite:bool=true", InferGather},
    {"gather_nd", "X Index", "Out", "", InferGatherNd},
    {"scatter", "X Ids Updates", "Out", "overwrite:bool=true", OutLikeX},
    {"scatter_nd_add", "X Index Updates", "Out", "", OutLikeX},
    {"index_select", "X Index", "Out", "dim:int=0", InferIndexSelect},
    {"index_sample", "X Index", "Out", "", InferIndexSample},
    {"one_hot", "X depth_tensor?", "Out", "depth:int=-1 dtype:int=5 allow_out_of_range:bool=false", InferOneHot},
    {"one_hot_v2", "X depth_tensor?", "Out", "depth:int=-1 dtype:int=5 allow_out_of_range:bool=false", InferOneHotV2},
    {"shape", "Input", "Out", "", InferShapeOf},
    {"size", "Input", "Out", "", InferSize},
    {"cast", "X", "Out", "out_dtype:int in_dtype:int=-1", InferCast},
    {"assign", "X", "Out", "", OutLikeX},
    {"where", "Condition X Y", "Out", "", InferWhere},
    {"where_index", "Condition", "Out", "", InferWhereIndex},
    {"pad_constant_like", "X Y", "Out", "pad_value:float=0", OutLikeX},
    {"reverse", "X", "Out", "axis:ints", OutLikeX},
    {"multiplex", "Ids X*", "Out", "", InferMultiplex},
    {"norm", "X", "Out Norm?", "axis:int epsilon:float=1e-10", InferNorm},
    {"hash", "X", "Out", "num_hash:int=1 mod_by:long=100000", InferHash},
    {"shard_index", "X", "Out", "index_num:long nshards:int shard_id:int ignore_value:int=-1", OutLikeX},
    {"unique", "X", "Out Index", "dtype:int=3", InferUnique},
    {"unique_with_counts", "X", "Out Index Count", "dtype:int=3", InferUnique},
    {"diag", "Diagonal", "Out", "", InferDiag},
    {"sampling_id", "X", "Out", "min:float=0 max:float=1 seed:long=0", InferSamplingId},
    {"shuffle_batch", "X Seed?", "Out ShuffleIdx? SeedOut?", "startup_seed:long=0", InferShuffle},
    {"merge_selected_rows", "X", "Out", "", OutLikeX},
    {"get_tensor_from_selected_rows", "X", "Out", "", InferRowsAsTensor},
};

}  // namespace

std::span<const OpRow> TensorRows() { return kTensorRows; }

}  // namespace regatta::program
