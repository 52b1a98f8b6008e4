// Operators on two tensors, element by element; the shorter one is broadcast along `axis`.
#include <algorithm>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

absl::Status InferBroadcast(InferContext& context) {
  ASSIGN_OR_RETURN(const Shape shape,
                   BroadcastShapes(context.ShapeOf("X"), context.ShapeOf("Y"), context.attributes().Int("axis")));
  const Variable& x = context.In("X");
  const int lod_level = std::max(x.lod_level, context.In("Y").lod_level);
  context.SetKind("Out", x.kind);
  context.Set("Out", shape, x.dtype, lod_level);
  return absl::OkStatus();
}

absl::Status InferComparison(InferContext& context) {
  ASSIGN_OR_RETURN(const Shape shape,
                   BroadcastShapes(context.ShapeOf("X"), context.ShapeOf("Y"), context.attributes().Int("axis")));
  context.Set("Out", shape, DataType::kBool, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferLogical(InferContext& context) {
  context.Set("Out", Shape(context.ShapeOf("X")), DataType::kBool, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferIsX(InferContext& context) {
  context.Set("Out", {1}, DataType::kBool);
  return absl::OkStatus();
}

constexpr char kAxis[] = "axis:int=-1 x_data_format:string= y_data_format:string=";

constexpr OpRow kElementwiseRows[] = {
    {"elementwise_add", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_sub", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_mul", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_div", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_max", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_min", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_pow", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_mod", "X Y", "Out", kAxis, InferBroadcast},
    {"elementwise_floordiv", "X Y", "Out", kAxis, InferBroadcast},
    {"minus", "X Y", "Out", "", OutLikeX},
    {"less_than", "X Y", "Out", "axis:int=-1", InferComparison},
    {"less_equal", "X Y", "Out", "axis:int=-1", InferComparison},
    {"greater_than", "X Y", "Out", "axis:int=-1", InferComparison},
    {"greater_equal", "X Y", "Out", "axis:int=-1", InferComparison},
    {"equal", "X Y", "Out", "axis:int=-1", InferComparison},
    {"not_equal", "X Y", "Out", "axis:int=-1", InferComparison},
    {"logical_and", "X Y", "Out", "", InferLogical},
    {"logical_or", "X Y", "Out", "", InferLogical},
    {"logical_xor", "X Y", "Out", "", InferLogical},
    {"logical_not", "X", "Out", "", InferLogical},
    {"isfinite", "X", "Out", "", InferIsX},
    {"isinf", "X", "Out", "", InferIsX},
    {"isnan", "X", "Out", "", InferIsX},
    {"is_empty", "X", "Out", "", InferIsX},
};

}  // namespace

std::span<const OpRow> ElementwiseRows() { return kElementwiseRows; }

}  // namespace regatta::program
