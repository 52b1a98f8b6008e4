// Losses, a value a sample.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// X [.., classes] and Label [.., 1], or [.., classes] with soft labels, of the same samples.
absl::Status CheckLabels(const InferContext& context, std::string_view slot, bool soft) {
  const Shape &x = context.ShapeOf(slot), &label = context.ShapeOf("Label");
  if (x.empty() || label.empty()) return absl::OkStatus();
  if (!MayEqual(x[0], label[0])) return context.Refuse({slot, "Label"}, "want as many labels as samples");
  if (soft && !MayEqual(x.back(), label.back()))
    return context.Refuse({slot, "Label"}, "soft_label wants a probability for each class");
  if (!soft && label.size() == x.size() && !MayEqual(label.back(), 1))
    return context.Refuse({slot, "Label"}, "want a label of shape [.., 1]; labels for each class need soft_label=True");
  return absl::OkStatus();
}

Shape LastIsOne(Shape shape) {
  if (!shape.empty()) shape.back() = 1;
  return shape;
}

absl::Status InferCrossEntropy(InferContext& context) {
  RETURN_IF_ERROR(CheckLabels(context, "X", context.attributes().Bool("soft_label")));
  const Variable& x = context.In("X");
  context.Set("Y", LastIsOne(x.shape), x.dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferCrossEntropy2(InferContext& context) {
  RETURN_IF_ERROR(CheckLabels(context, "X", false));
  const Variable& x = context.In("X");
  context.Set("Y", LastIsOne(x.shape), x.dtype, x.lod_level);
  context.Set("MatchX", LastIsOne(x.shape), x.dtype);
  context.Set("XShape", Shape(x.shape), x.dtype);
  return absl::OkStatus();
}

absl::Status InferSoftmaxWithCrossEntropy(InferContext& context) {
  const Variable& logits = context.In("Logits");
  Shape loss = logits.shape;
  if (!loss.empty()) {
    ASSIGN_OR_RETURN(const size_t axis, AxisIn(context, "Logits", context.attributes().Int("axis"), loss.size()));
    loss[axis] = 1;
    if (axis + 1 == loss.size())
      RETURN_IF_ERROR(CheckLabels(context, "Logits", context.attributes().Bool("soft_label")));
  }
  context.Set("Softmax", Shape(logits.shape), logits.dtype, logits.lod_level);
  context.Set("Loss", loss, logits.dtype, logits.lod_level);
  return absl::OkStatus();
}

// The output is as the first input; the second one must not have another number of samples.
absl::Status LikeFirst(InferContext& context, std::string_view output, std::string_view input, std::string_view other) {
  const Shape &a = context.ShapeOf(input), &b = context.ShapeOf(other);
  if (!a.empty() && !b.empty() && !MayEqual(a[0], b[0]))
    return context.Refuse({input, other}, "want as many labels as samples");
  context.SetLike(output, input);
  return absl::OkStatus();
}

absl::Status InferLogLoss(InferContext& context) { return LikeFirst(context, "Loss", "Predicted", "Labels"); }
absl::Status InferHinge(InferContext& context) { return LikeFirst(context, "Loss", "Logits", "Labels"); }
absl::Status InferOutWithLabel(InferContext& context) { return LikeFirst(context, "Out", "X", "Label"); }
absl::Status InferYWithLabel(InferContext& context) { return LikeFirst(context, "Y", "X", "Label"); }
absl::Status InferRankLoss(InferContext& context) { return LikeFirst(context, "Out", "Label", "Left"); }

absl::Status InferBpr(InferContext& context) {
  RETURN_IF_ERROR(LikeFirst(context, "Y", "X", "Label"));
  context.Set("Y", LastIsOne(context.ShapeOf("X")), context.In("X").dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferMarginRank(InferContext& context) {
  context.SetLike("Out", "Label");
  context.SetLike("Activated", "Label");
  return absl::OkStatus();
}

absl::Status InferHuber(InferContext& context) {
  RETURN_IF_ERROR(LikeFirst(context, "Out", "X", "Y"));
  context.SetLike("Residual", "X");
  return absl::OkStatus();
}

absl::Status InferSmoothL1(InferContext& context) {
  const Variable& x = context.In("X");
  if (!x.shape.empty()) context.Set("Out", {x.shape[0], 1}, x.dtype, x.lod_level);
  context.SetLike("Diff", "X");
  return absl::OkStatus();
}

absl::Status InferSquaredDistance(InferContext& context) {
  const Variable& x = context.In("X");
  if (!x.shape.empty()) context.Set("Out", {x.shape[0], 1}, x.dtype, x.lod_level);
  context.SetLike("sub_result", "X");
  return absl::OkStatus();
}

absl::Status InferKldiv(InferContext& context) {
  const Variable& x = context.In("X");
  const bool whole = context.attributes().String("reduction") == "none";
  context.Set("Loss", whole ? Shape(x.shape) : Shape{1}, x.dtype);
  return absl::OkStatus();
}

constexpr OpRow kLossRows[] = {
    {"cross_entropy", "X Label", "Y", "soft_label:bool=false ignore_index:int=-100", InferCrossEntropy},
    {"cross_entropy2", "X Label", "Y XShape? MatchX?", "ignore_index:int=-100", InferCrossEntropy2},
    {"softmax_with_cross_entropy", "Logits Label", "Softmax? Loss",
     "soft_label:bool=false numeric_stable_mode:bool=true ignore_index:int=-100 axis:int=-1",
     InferSoftmaxWithCrossEntropy},
    {"sigmoid_cross_entropy_with_logits", "X Label", "Out", "normalize:bool=false ignore_index:int=-100",
     InferOutWithLabel},
    {"log_loss", "Predicted Labels", "Loss", "epsilon:float=1e-4", InferLogLoss},
    {"bce_loss", "X Label", "Out", "", InferOutWithLabel},
    {"bpr_loss", "X Label", "Y", "", InferBpr},
    {"hinge_loss", "Logits Labels", "Loss", "", InferHinge},
    {"rank_loss", "Label Left Right", "Out", "", InferRankLoss},
    {"margin_rank_loss", "X1 X2 Label", "Out Activated?", "margin:float=0", InferMarginRank},
    {"huber_loss", "X Y", "Out Residual?", "delta:float", InferHuber},
    {"smooth_l1_loss", "X Y InsideWeight? OutsideWeight?", "Out Diff?", "sigma:float=1", InferSmoothL1},
    {"squared_l2_distance", "X Y", "Out sub_result?", "", InferSquaredDistance},
    {"kldiv_loss", "X Target", "Loss", "reduction:string=mean|none|batchmean|sum", InferKldiv},
    {"teacher_student_sigmoid_loss", "X Label", "Y", "soft_max_up_bound:float=15 soft_max_lower_bound:float=-15",
     InferYWithLabel},
};

}  // namespace

std::span<const OpRow> LossRows() { return kLossRows; }

}  // namespace regatta::program
