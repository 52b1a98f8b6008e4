// Operators on one tensor, element by element, and those along one axis that keep its shape.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

absl::Status InferPrelu(InferContext& context) {
  const std::string& mode = context.attributes().String("mode");
  if (mode == "channel") RETURN_IF_ERROR(context.WantRankAtLeast("X", 2));
  return OutLikeX(context);
}

absl::Status InferMaxout(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("X", 4));
  Shape shape = context.ShapeOf("X");
  const int64_t groups = context.attributes().Int("groups");
  if (shape.empty()) return OutLikeX(context);
  ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "X", context.attributes().Int("axis"), shape.size()));
  if (groups < 1 || shape[axis] % groups != 0) {
    return context.Refuse({"X"}, absl::StrCat("groups is ", groups, ", which does not divide axis ", axis,
                                              "; want a divisor of its extent"));
  }
  if (shape[axis] > 0) shape[axis] /= groups;
  context.Set("Out", shape, context.In("X").dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

constexpr OpRow kActivationRows[] = {
    {"sigmoid", "X", "Out", "", OutLikeX},
    {"logsigmoid", "X", "Out", "", OutLikeX},
    {"relu", "X", "Out", "", OutLikeX},
    {"tanh", "X", "Out", "", OutLikeX},
    {"tanh_shrink", "X", "Out", "", OutLikeX},
    {"exp", "X", "Out", "", OutLikeX},
    {"log", "X", "Out", "", OutLikeX},
    {"log1p", "X", "Out", "", OutLikeX},
    {"square", "X", "Out", "", OutLikeX},
    {"sqrt", "X", "Out", "", OutLikeX},
    {"rsqrt", "X", "Out", "", OutLikeX},
    {"reciprocal", "X", "Out", "", OutLikeX},
    {"abs", "X", "Out", "", OutLikeX},
    {"sign", "X", "Out", "", OutLikeX},
    {"ceil", "X", "Out", "", OutLikeX},
    {"floor", "X", "Out", "", OutLikeX},
    {"round", "X", "Out", "", OutLikeX},
    {"sin", "X", "Out", "", OutLikeX},
    {"cos", "X", "Out", "", OutLikeX},
    {"asin", "X", "Out", "", OutLikeX},
    {"acos", "X", "Out", "", OutLikeX},
    {"atan", "X", "Out", "", OutLikeX},
    {"erf", "X", "Out", "", OutLikeX},
    {"softplus", "X", "Out", "", OutLikeX},
    {"softsign", "X", "Out", "", OutLikeX},
    {"scale", "X ScaleTensor?", "Out", "scale:float=1 bias:float=0 bias_after_scale:bool=true", OutLikeX},
    {"pow", "X FactorTensor?", "Out", "factor:float=1", OutLikeX},
    {"clip", "X Min? Max?", "Out", "min:float max:float", OutLikeX},
    {"clip_by_norm", "X", "Out", "max_norm:float", OutLikeX},
    {"increment", "X", "Out", "step:float=1", OutLikeX},
    {"relu6", "X", "Out", "threshold:float=6", OutLikeX},
    {"brelu", "X", "Out", "t_min:float=0 t_max:float=24", OutLikeX},
    {"leaky_relu", "X", "Out", "alpha:float=0.02", OutLikeX},
    {"soft_relu", "X", "Out", "threshold:float=40", OutLikeX},
    {"thresholded_relu", "X", "Out", "threshold:float=1", OutLikeX},
    {"elu", "X", "Out", "alpha:float=1", OutLikeX},
    {"selu", "X", "Out", "scale:float=1.0507009873554804 alpha:float=1.6732632423543772", OutLikeX},
    {"gelu", "X", "Out", "approximate:bool=false", OutLikeX},
    {"swish", "X", "Out", "beta:float=1", OutLikeX},
    {"stanh", "X", "Out", "scale_a:float=0.67 scale_b:float=1.7159", OutLikeX},
    {"hard_sigmoid", "X", "Out", "slope:float=0.2 offset:float=0.5", OutLikeX},
    {"hard_swish", "X", "Out", "threshold:float=6 scale:float=6 offset:float=3", OutLikeX},
    {"hard_shrink", "X", "Out", "threshold:float=0.5", OutLikeX},
    {"softshrink", "X", "Out", "lambda:float=0.5", OutLikeX},
    {"prelu", "X Alpha", "Out", "mode:string=all|channel|element", InferPrelu},
    {"maxout", "X", "Out", "groups:int axis:int=1", InferMaxout},
    {"softmax", "X", "Out", "axis:int=-1 data_format:string=AnyLayout is_test:bool=false", OutLikeX},
    {"cumsum", "X", "Out", "axis:int=-1 exclusive:bool=false reverse:bool=false", OutLikeX},
    {"label_smooth", "X PriorDist?", "Out", "epsilon:float=0", OutLikeX},
};

}  // namespace

std::span<const OpRow> ActivationRows() { return kActivationRows; }

}  // namespace regatta::program
