// Tensors that are made: constants, random numbers, ranges. A random seed of 0 takes the program's.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// The shape is the attribute, but for one extent that is an extent of Input.
absl::Status InferBatchSizeLike(InferContext& context) {
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "dtype"));
  Shape out = context.attributes().Ints("shape");
  const Shape& input = context.ShapeOf("Input");
  ASSIGN_OR_RETURN(const size_t to, AxisIn(context, "Input", context.attributes().Int("output_dim_idx"), out.size()));
  if (!input.empty()) {
    ASSIGN_OR_RETURN(const size_t from,
                     AxisIn(context, "Input", context.attributes().Int("input_dim_idx"), input.size()));
    out[to] = input[from];
  }
  context.Set("Out", out, dtype);
  return absl::OkStatus();
}

// Extents that tensors give are known when the program runs.
absl::Status InferFill(InferContext& context) {
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "dtype"));
  Shape out = context.attributes().Ints("shape");
  if (context.Has("ShapeTensorList")) out.assign(context.Count("ShapeTensorList"), kUnknownExtent);
  if (context.Has("ShapeTensor"))
    out.assign(context.ShapeOf("ShapeTensor").empty() ? 1 : std::max<int64_t>(context.ShapeOf("ShapeTensor")[0], 1),
               kUnknownExtent);
  if (const Shape& given = context.attributes().Ints("shape"); given.size() == out.size()) out = given;
  context.Set("Out", out, dtype);
  return absl::OkStatus();
}

absl::Status InferFillLike(InferContext& context) {
  const Variable& x = context.In("X");
  DataType dtype = x.dtype;
  if (context.attributes().Int("dtype") >= 0) {
    ASSIGN_OR_RETURN(dtype, TypeIn(context, "dtype"));
  }
  context.Set("Out", Shape(x.shape), dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferAssignValue(InferContext& context) {
  RETURN_IF_ERROR(OutFromAttributes(context));
  const Attributes& attributes = context.attributes();
  const size_t values = attributes.Floats("fp32_values").size() + attributes.Ints("int32_values").size() +
                        attributes.Ints("int64_values").size() + attributes.Ints("bool_values").size();
  const int64_t want = ElementCount(attributes.Ints("shape"));
  if (want == static_cast<int64_t>(values)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("attribute shape is ", ShapeText(attributes.Ints("shape")), ", ", want,
                                                 " values, and ", values, " are given; give as many as the shape has"));
}

absl::Status InferEye(InferContext& context) {
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "dtype"));
  const int64_t rows = context.attributes().Int("num_rows"), columns = context.attributes().Int("num_columns");
  context.Set("Out", {rows, columns < 0 ? rows : columns}, dtype);
  return absl::OkStatus();
}

absl::Status InferRange(InferContext& context) {
  context.Set("Out", {kUnknownExtent}, context.In("Start").dtype);
  return absl::OkStatus();
}

absl::Status InferRandperm(InferContext& context) {
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "dtype"));
  context.Set("Out", {context.attributes().Int("n")}, dtype);
  return absl::OkStatus();
}

constexpr char kDims[] = "ShapeTensor? ShapeTensorList*?";

constexpr OpRow kFillRows[] = {
    {"fill_constant", "ValueTensor? ShapeTensor? ShapeTensorList*?", "Out",
     "dtype:int=5 shape:longs=[] value:float=0 str_value:string=", InferFill},
    {"fill_constant_batch_size_like", "Input", "Out",
     "shape:longs input_dim_idx:int=0 output_dim_idx:int=0 dtype:int=5 value:float=0 str_value:string=",
     InferBatchSizeLike},
    {"fill_zeros_like", "X", "Out", "", OutLikeX},
    {"fill_any_like", "X", "Out", "value:float=0 dtype:int=-1", InferFillLike},
    {"assign_value", "", "Out",
     "shape:longs dtype:int bool_values:ints=[] fp32_values:floats=[] int32_values:ints=[] int64_values:longs=[]",
     InferAssignValue},
    {"uniform_random", kDims, "Out",
     "shape:longs=[] min:float=-1 max:float=1 seed:long=0 diag_num:int=0 diag_step:int=0 diag_val:float=1 dtype:int=5",
     InferFill},
    {"gaussian_random", kDims, "Out", "shape:longs=[] mean:float=0 std:float=1 seed:long=0 dtype:int=5", InferFill},
    {"truncated_gaussian_random", "", "Out", "shape:longs mean:float=0 std:float=1 seed:long=0 dtype:int=5",
     OutFromAttributes},
    {"uniform_random_batch_size_like", "Input", "Out",
     "shape:longs input_dim_idx:int=0 output_dim_idx:int=0 min:float=-1 max:float=1 seed:long=0 diag_num:int=0 "
     "diag_step:int=0 diag_val:float=1 dtype:int=5",
     InferBatchSizeLike},
    {"gaussian_random_batch_size_like", "Input", "Out",
     "shape:longs input_dim_idx:int=0 output_dim_idx:int=0 mean:float=0 std:float=1 seed:long=0 dtype:int=5",
     InferBatchSizeLike},
    {"randint", kDims, "Out", "shape:longs=[] low:int high:int dtype:int=3 seed:long=0", InferFill},
    {"randperm", "", "Out", "n:int dtype:int=3 seed:long=0", InferRandperm},
    {"eye", "", "Out", "dtype:int=5 num_rows:long num_columns:long=-1", InferEye},
    {"range", "Start End Step", "Out", "", InferRange},
    {"linspace", "Start Stop Num", "Out", "", InferRange},
};

}  // namespace

std::span<const OpRow> FillRows() { return kFillRows; }

}  // namespace regatta::program
