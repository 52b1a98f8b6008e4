// Products of matrices, and rows of one by ids.
#include <algorithm>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// X and Y are read as matrices: the first x_num_col_dims extents of X are its rows.
absl::Status InferMul(InferContext& context) {
  const Shape &x = context.ShapeOf("X"), &y = context.ShapeOf("Y");
  const int64_t x_rows = context.attributes().Int("x_num_col_dims"),
                y_rows = context.attributes().Int("y_num_col_dims");
  if (x.empty() || y.empty()) return absl::OkStatus();
  for (const auto& [slot, rows, shape] : {std::tuple("X", x_rows, &x), std::tuple("Y", y_rows, &y)}) {
    if (rows > 0 && rows < static_cast<int64_t>(shape->size())) continue;
    return context.Refuse({slot}, absl::StrCat(slot[0] == 'X' ? "x" : "y", "_num_col_dims is ", rows,
                                               "; want at least 1 and less than its ", shape->size(), " extents"));
  }
  const int64_t inner_x = AsMatrix(x, x_rows).second, inner_y = AsMatrix(y, y_rows).first;
  if (!MayEqual(inner_x, inner_y)) {
    return context.Refuse({"X", "Y"},
                          absl::StrCat(inner_x, " and ", inner_y, " differ; the columns of X must be the rows of Y"));
  }
  Shape out(x.begin(), x.begin() + x_rows);
  out.insert(out.end(), y.begin() + y_rows, y.end());
  context.Set("Out", out, context.In("X").dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

// The last two extents are multiplied, those before them are batches. A vector is a row of X, a column of Y.
absl::Status InferMatmul(InferContext& context) {
  Shape x = context.ShapeOf("X"), y = context.ShapeOf("Y");
  if (x.empty() || y.empty()) return absl::OkStatus();
  const bool row = x.size() == 1, column = y.size() == 1;
  const bool turn_x = context.attributes().Bool("transpose_X"), turn_y = context.attributes().Bool("transpose_Y");
  if (row) x = turn_x ? Shape{x[0], 1} : Shape{1, x[0]};
  if (column) y = turn_y ? Shape{1, y[0]} : Shape{y[0], 1};
  if (turn_x) std::swap(x[x.size() - 1], x[x.size() - 2]);
  if (turn_y) std::swap(y[y.size() - 1], y[y.size() - 2]);
  const int64_t inner_x = x[x.size() - 1], inner_y = y[y.size() - 2];
  if (!MayEqual(inner_x, inner_y)) {
    return context.Refuse({"X", "Y"}, absl::StrCat(inner_x, " and ", inner_y,
                                                   " differ; want equal inner extents (transpose_X and transpose_Y "
                                                   "turn a matrix round)"));
  }
  const bool x_longer = x.size() >= y.size();
  const Shape& batches = x_longer ? x : y;
  const Shape& other = x_longer ? y : x;
  const bool equal = std::equal(batches.begin(), batches.end() - 2, other.begin(), other.end() - 2, MayEqual);
  if (other.size() > 2 && !equal)
    return context.Refuse({"X", "Y"}, "their batches differ; want the same extents before the last two, or a matrix");
  Shape out(batches.begin(), batches.end() - 2);
  if (!row) out.push_back(x[x.size() - 2]);
  if (!column) out.push_back(y[y.size() - 1]);
  if (out.empty()) out = {1};
  context.Set("Out", out, context.In("X").dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferDot(InferContext& context) {
  Shape out = context.ShapeOf("X");
  if (!out.empty()) out.back() = 1;
  context.Set("Out", out, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferBmm(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("X", 3));
  RETURN_IF_ERROR(context.WantRank("Y", 3));
  const Shape &x = context.ShapeOf("X"), &y = context.ShapeOf("Y");
  if (x.empty() || y.empty()) return absl::OkStatus();
  if (!MayEqual(x[2], y[1]) || !MayEqual(x[0], y[0]))
    return context.Refuse({"X", "Y"}, "want [b, n, k] and [b, k, m] with the same b and k");
  context.Set("Out", {x[0], x[1], y[2]}, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status InferAddmm(InferContext& context) {
  const Shape &x = context.ShapeOf("X"), &y = context.ShapeOf("Y");
  RETURN_IF_ERROR(context.WantRank("X", 2));
  RETURN_IF_ERROR(context.WantRank("Y", 2));
  if (x.empty() || y.empty()) return absl::OkStatus();
  if (!MayEqual(x[1], y[0])) return context.Refuse({"X", "Y"}, "the columns of X must be the rows of Y");
  context.Set("Out", {x[0], y[1]}, context.In("X").dtype);
  return absl::OkStatus();
}

absl::Status SetRows(InferContext& context, Shape rows) {
  RETURN_IF_ERROR(context.WantRank("W", 2));
  RETURN_IF_ERROR(WantIntegers(context, "Ids"));
  const Variable& w = context.In("W");
  rows.push_back(w.shape.empty() ? kUnknownExtent : w.shape[1]);
  context.Set("Out", rows, w.dtype, context.In("Ids").lod_level);
  return absl::OkStatus();
}

// Ids [.., 1] → [.., dim]
absl::Status InferLookupTable(InferContext& context) {
  Shape rows = context.ShapeOf("Ids");
  if (!rows.empty()) {
    if (!MayEqual(rows.back(), 1))
      return context.Refuse({"Ids"},
                            "the last extent must be 1 (layers.data(shape=[1], dtype='int64')); "
                            "fluid.embedding takes ids without it");
    rows.pop_back();
  }
  return SetRows(context, rows);
}

// Ids [..] → [.., dim]
absl::Status InferLookupTableV2(InferContext& context) { return SetRows(context, Shape(context.ShapeOf("Ids"))); }

constexpr char kLookup[] =
    "is_sparse:bool=false is_distributed:bool=false padding_idx:long=-1 grad_inplace:bool=false "
    "remote_prefetch:bool=false trainer_id:int=0 height_sections:longs=[] epmap:strings=[] table_names:strings=[] "
    "entry:string=none";

constexpr OpRow kMatrixRows[] = {
    {"mul", "X Y", "Out",
     "x_num_col_dims:int=1 y_num_col_dims:int=1 scale_x:float=1 scale_y:floats=[1] "
     "scale_out:float=1 force_fp32_output:bool=false",
     InferMul},
    {"matmul", "X Y", "Out", "transpose_X:bool=false transpose_Y:bool=false alpha:float=1 head_number:int=1",
     InferMatmul},
    {"bmm", "X Y", "Out", "", InferBmm},
    {"dot", "X Y", "Out", "", InferDot},
    {"addmm", "Input X Y", "Out", "Alpha:float=1 Beta:float=1", InferAddmm},
    {"lookup_table", "W Ids", "Out", kLookup, InferLookupTable},
    {"lookup_table_v2", "W Ids", "Out", kLookup, InferLookupTableV2},
};

}  // namespace

std::span<const OpRow> MatrixRows() { return kMatrixRows; }

}  // namespace regatta::program
