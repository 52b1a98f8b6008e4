// Sums, means and other reductions over axes; the largest along an axis.
#include <algorithm>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// Without the axes of `dim`, or with 1 in their place. [1] if nothing is left.
absl::Status SetReduced(InferContext& context, DataType dtype) {
  const Shape& x = context.ShapeOf("X");
  if (x.empty()) return absl::OkStatus();
  const bool keep = context.attributes().Bool("keep_dim");
  std::vector<bool> reduced(x.size(), context.attributes().Bool("reduce_all"));
  for (const int64_t axis : context.attributes().Ints("dim")) {
    if (context.attributes().Bool("reduce_all")) break;
    ASSIGN_OR_RETURN(const size_t place, AxisIn(context, "X", axis, x.size()));
    reduced[place] = true;
  }
  Shape out;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i]) out.push_back(x[i]);
    if (reduced[i] && keep) out.push_back(1);
  }
  if (out.empty()) out = {1};
  const bool rows_stay = !reduced[0];
  context.Set("Out", out, dtype, rows_stay ? context.In("X").lod_level : 0);
  return absl::OkStatus();
}

absl::Status InferReduce(InferContext& context) { return SetReduced(context, context.In("X").dtype); }
absl::Status InferReduceToBool(InferContext& context) { return SetReduced(context, DataType::kBool); }

absl::Status InferScalar(InferContext& context) {
  context.Set("Out", {1}, context.In("X").dtype);
  return absl::OkStatus();
}

// All of one shape; the sum of selected rows alone is selected rows.
absl::Status InferSum(InferContext& context) {
  Shape out = context.ShapeOf("X");
  bool rows = true;
  for (size_t i = 0; i < context.Count("X"); ++i) {
    const Variable& x = context.In("X", i);
    rows = rows && x.kind == VariableKind::kSelectedRows;
    if (x.kind == VariableKind::kLodTensorArray || x.shape.empty()) continue;
    if (out.empty()) out = x.shape;
    if (!std::equal(out.begin(), out.end(), x.shape.begin(), x.shape.end(), MayEqual)) {
      return absl::InvalidArgumentError(absl::StrCat("X[0] is ", ShapeText(context.ShapeOf("X")), " and X[", i, "] is ",
                                                     ShapeText(x.shape), "; want one shape for all"));
    }
    for (size_t j = 0; j < out.size(); ++j) out[j] = std::max(out[j], x.shape[j]);
  }
  if (context.In("X").kind != VariableKind::kLodTensorArray)
    context.SetKind("Out", rows ? VariableKind::kSelectedRows : VariableKind::kLodTensor);
  context.Set("Out", out, context.In("X").dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferArg(InferContext& context) {
  Shape out = context.ShapeOf("X");
  if (out.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("axis"), out.size()));
  out[axis] = 1;
  if (!context.attributes().Bool("keepdims")) out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  if (out.empty()) out = {1};
  context.Set("Out", out,
              context.attributes().Int("dtype") == CodeOf(DataType::kInt32) ? DataType::kInt32 : DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferArgsort(InferContext& context) {
  context.SetLike("Out", "X");
  context.Set("Indices", Shape(context.ShapeOf("X")), DataType::kInt64, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferTopK(InferContext& context) {
  Shape out = context.ShapeOf("X");
  if (out.empty()) return absl::OkStatus();
  const int64_t k = context.Has("K") ? kUnknownExtent : context.attributes().Int("k");
  if (k == 0 || k < -1 || (out.back() > 0 && k > out.back())) {
    return context.Refuse({"X"}, absl::StrCat("k is ", k, "; want 1 to the last extent"));
  }
  out.back() = k;
  const Variable& x = context.In("X");
  context.Set("Out", out, x.dtype, x.lod_level);
  context.Set("Indices", out, DataType::kInt64, x.lod_level);
  return absl::OkStatus();
}

constexpr char kReduce[] = "dim:ints=[0] keep_dim:bool=false reduce_all:bool=false in_dtype:int=-1 out_dtype:int=-1";

constexpr OpRow kReduceRows[] = {
    {"reduce_sum", "X", "Out", kReduce, InferReduce},
    {"reduce_mean", "X", "Out", kReduce, InferReduce},
    {"reduce_max", "X", "Out", kReduce, InferReduce},
    {"reduce_min", "X", "Out", kReduce, InferReduce},
    {"reduce_prod", "X", "Out", kReduce, InferReduce},
    {"reduce_all", "X", "Out", kReduce, InferReduceToBool},
    {"reduce_any", "X", "Out", kReduce, InferReduceToBool},
    {"frobenius_norm", "X", "Out", kReduce, InferReduce},
    {"logsumexp", "X", "Out", "dim:ints=[0] keep_dim:bool=false reduce_all:bool=false", InferReduce},
    {"mean", "X", "Out", "", InferScalar},
    {"sum", "X*", "Out", "", InferSum},
    {"l1_norm", "X", "Out", "", InferScalar},
    {"squared_l2_norm", "X", "Out", "", InferScalar},
    {"arg_max", "X", "Out", "axis:int keepdims:bool=false dtype:int=-1", InferArg},
    {"arg_min", "X", "Out", "axis:int keepdims:bool=false dtype:int=-1", InferArg},
    {"argsort", "X", "Out Indices", "axis:int=-1 descending:bool=false", InferArgsort},
    {"top_k", "X K?", "Out Indices", "k:int=1", InferTopK},
};

}  // namespace

std::span<const OpRow> ReduceRows() { return kReduceRows; }

}  // namespace regatta::program
