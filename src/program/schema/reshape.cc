// Operators that change a tensor's shape and keep its elements, or repeat them, or put others around them.
#include <algorithm>
#include <set>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// The extents that `shape` asks for: 0 = as X has it, one -1 = what is left.
absl::StatusOr<Shape> Reshaped(const InferContext& context, const Shape& x, const std::vector<int64_t>& shape) {
  Shape out = shape;
  size_t unknown = out.size();
  std::set<size_t> copied;  // extents of X that stand in the result as they are
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0 && i >= x.size())
      return context.Refuse(
          {"X"}, absl::StrCat("shape is ", ShapeText(shape), ", whose 0 stands for an extent that X has not"));
    if (out[i] < -1)
      return context.Refuse({"X"}, absl::StrCat("shape is ", ShapeText(shape), "; want extents from -1 on"));
    if (out[i] == -1 && unknown < out.size())
      return context.Refuse({"X"}, absl::StrCat("shape is ", ShapeText(shape), "; want one -1 at most"));
    if (out[i] == -1) unknown = i;
    if (out[i] == 0) {
      out[i] = x[i];
      if (x[i] < 0) copied.insert(i);
    }
  }
  int64_t have = 1, want = 1;  // without the extents that are copied
  for (size_t i = 0; i < x.size(); ++i)
    if (!copied.contains(i)) have = have < 0 || x[i] < 0 ? kUnknownExtent : Times(have, x[i]);
  for (size_t i = 0; i < out.size(); ++i)
    if (i != unknown && !copied.contains(i)) want = Times(want, out[i]);
  const bool fits = have < 0 || (unknown < out.size() ? want > 0 && have % want == 0 : have == want);
  if (!fits) {
    return context.Refuse(
        {"X"}, absl::StrCat(have, " elements do not make a ", ShapeText(shape), "; want as many elements as X has"));
  }
  if (unknown < out.size() && have >= 0) out[unknown] = have / want;
  return out;
}

absl::Status InferReshape(InferContext& context) {
  const Variable& x = context.In("X");
  const std::vector<int64_t>& shape = context.attributes().Ints("shape");
  if (shape.empty() && !context.Has("Shape") && !context.Has("ShapeTensor"))
    return context.Refuse({"X"}, "shape is empty; give the extents that the result has");
  Shape out = shape;
  if (context.Has("ShapeTensor")) {
    out.resize(context.Count("ShapeTensor"), kUnknownExtent);
  } else if (!x.shape.empty() && !shape.empty()) {
    ASSIGN_OR_RETURN(out, Reshaped(context, x.shape, shape));
  }
  context.Set("Out", out, x.dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferSqueeze(InferContext& context) {
  const Variable& x = context.In("X");
  std::vector<bool> left_out(x.shape.size(), false);
  for (const int64_t given : context.attributes().Ints("axes")) {
    ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", given, x.shape.size()));
    if (!MayEqual(x.shape[axis], 1))
      return context.Refuse({"X"}, absl::StrCat("its axis ", axis, " is not 1, so it cannot be left out"));
    left_out[axis] = true;
  }
  Shape out;
  const bool all = context.attributes().Ints("axes").empty();
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (all ? x.shape[i] != 1 : !left_out[i]) out.push_back(x.shape[i]);
  if (out.empty() && !x.shape.empty()) out = {1};
  context.Set("Out", out, x.dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferUnsqueeze(InferContext& context) {
  const Variable& x = context.In("X");
  Shape out = x.shape;
  for (const int64_t given : context.attributes().Ints("axes")) {
    const auto rank = static_cast<int64_t>(out.size());
    const int64_t axis = given < 0 ? given + rank + 1 : given;
    if (axis < 0 || axis > rank)
      return context.Refuse(
          {"X"}, absl::StrCat("there is no place ", given, " for a new axis; want ", -rank - 1, " to ", rank));
    out.insert(out.begin() + axis, 1);
  }
  if (context.Has("AxesTensor") || context.Has("AxesTensorList")) out.clear();
  context.Set("Out", out, x.dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferTranspose(InferContext& context) {
  const Variable& x = context.In("X");
  const std::vector<int64_t>& axes = context.attributes().Ints("axis");
  std::vector<int64_t> sorted = axes;
  std::ranges::sort(sorted);
  bool each_once = x.shape.empty() || sorted.size() == x.shape.size();
  for (size_t i = 0; i < sorted.size(); ++i) each_once = each_once && sorted[i] == static_cast<int64_t>(i);
  if (!each_once)
    return context.Refuse({"X"}, absl::StrCat("perm is ", ShapeText(axes), "; want each of its axes once"));
  Shape out;
  if (!x.shape.empty())
    for (const int64_t axis : axes) out.push_back(x.shape[axis]);
  context.Set("Out", out, x.dtype, axes.empty() || axes[0] == 0 ? x.lod_level : 0);
  return absl::OkStatus();
}

absl::Status InferFlatten(InferContext& context) {
  const Variable& x = context.In("X");
  if (x.shape.empty()) return absl::OkStatus();
  const int64_t axis = context.attributes().Int("axis");
  if (axis < 0 || axis > static_cast<int64_t>(x.shape.size()))
    return context.Refuse({"X"}, absl::StrCat("axis is ", axis, "; want 0 to ", x.shape.size()));
  const auto [rows, columns] = AsMatrix(x.shape, axis);
  context.Set("Out", {rows, columns}, x.dtype, axis > 0 ? x.lod_level : 0);
  return absl::OkStatus();
}

absl::Status InferExpand(InferContext& context) {
  Shape out = context.ShapeOf("X");
  const std::vector<int64_t>& times = context.attributes().Ints("expand_times");
  const bool by_tensor = context.Has("ExpandTimes") || context.Has("expand_times_tensor");
  if (!by_tensor && !out.empty() && times.size() != out.size())
    return context.Refuse({"X"}, absl::StrCat("expand_times is ", ShapeText(times), "; want a number for each extent"));
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < 0) continue;
    out[i] = i < times.size() && times[i] > 0 && !by_tensor ? Times(out[i], times[i]) : kUnknownExtent;
  }
  context.Set("Out", out, context.In("X").dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferExpandAs(InferContext& context) {
  context.Set("Out", Shape(context.ShapeOf("target_tensor")), context.In("X").dtype);
  return absl::OkStatus();
}

// paddings: before and after each extent.
absl::Status InferPad(InferContext& context) {
  Shape out = context.ShapeOf("X");
  const std::vector<int64_t>& paddings = context.attributes().Ints("paddings");
  if (!out.empty() && paddings.size() != 2 * out.size())
    return context.Refuse({"X"},
                          absl::StrCat("paddings is ", ShapeText(paddings), "; want two numbers for each extent"));
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] >= 0) out[i] += paddings[2 * i] + paddings[2 * i + 1];
  context.Set("Out", out, context.In("X").dtype);
  return absl::OkStatus();
}

// paddings: top, bottom, left, right.
absl::Status InferPad2d(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("X", 4));
  Shape out = context.ShapeOf("X");
  const std::vector<int64_t>& paddings = context.attributes().Ints("paddings");
  if (paddings.size() != 4 && !context.Has("Paddings"))
    return context.Refuse({"X"}, "want four paddings: top, bottom, left, right");
  if (out.empty()) return absl::OkStatus();
  const size_t height = context.attributes().String("data_format") == "NCHW" ? 2 : 1;
  for (size_t i = 0; i < 2; ++i) {
    int64_t& extent = out[height + i];
    if (context.Has("Paddings")) extent = kUnknownExtent;
    if (extent >= 0) extent += paddings[2 * i] + paddings[2 * i + 1];
  }
  context.Set("Out", out, context.In("X").dtype);
  return absl::OkStatus();
}

constexpr OpRow kReshapeRows[] = {
    {"reshape", "X Shape? ShapeTensor*?", "Out", "shape:ints=[]", InferReshape},
    {"reshape2", "X Shape? ShapeTensor*?", "Out XShape?", "shape:ints=[]", InferReshape},
    {"squeeze", "X", "Out", "axes:ints=[]", InferSqueeze},
    {"squeeze2", "X", "Out XShape?", "axes:ints=[]", InferSqueeze},
    {"unsqueeze", "X AxesTensor? AxesTensorList*?", "Out", "axes:ints=[]", InferUnsqueeze},
    {"unsqueeze2", "X AxesTensor? AxesTensorList*?", "Out XShape?", "axes:ints=[]", InferUnsqueeze},
    {"transpose", "X", "Out", "axis:ints data_format:string=AnyLayout", InferTranspose},
    {"transpose2", "X", "Out XShape?", "axis:ints data_format:string=AnyLayout", InferTranspose},
    {"flatten", "X", "Out", "axis:int=1", InferFlatten},
    {"flatten2", "X", "Out XShape?", "axis:int=1", InferFlatten},
    {"expand", "X ExpandTimes? expand_times_tensor*?", "Out", "expand_times:ints=[]", InferExpand},
    {"expand_as", "X target_tensor", "Out", "", InferExpandAs},
    {"pad", "X", "Out", "paddings:ints pad_value:float=0", InferPad},
    {"pad2d", "X Paddings?", "Out",
     "paddings:ints=[] pad_value:float=0 mode:string=constant|reflect|edge data_format:string=NCHW|NHWC", InferPad2d},
};

}  // namespace

std::span<const OpRow> ReshapeRows() { return kReshapeRows; }

}  // namespace regatta::program
