// Losses, a value a sample.
#include <algorithm>

#include "exec/kernel_table.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

// log(1 + exp(x)) without overflow.
torch::Tensor LogOnePlusExp(const torch::Tensor& x) { return at::relu(x) + at::log1p(at::exp(-at::abs(x))); }

// Labels of classes along `axis` of x, and which of them count.
struct ClassLabels {
  torch::Tensor classes;  // as x, with 1 at the axis; 0 where ignored
  torch::Tensor ignored;  // undefined = none
};

absl::StatusOr<ClassLabels> ReadLabels(const torch::Tensor& x, const torch::Tensor& labels, int64_t axis,
                                       int64_t ignore) {
  std::vector<int64_t> shape = x.sizes().vec();
  const int64_t classes = x.size(axis);
  shape[static_cast<size_t>(axis < 0 ? axis + x.dim() : axis)] = 1;
  if (at::numel(labels) * classes != x.numel())
    return absl::InvalidArgumentError(
        absl::StrCat("the labels are ", TensorText(labels), " for ", TensorText(x), "; want a label for each sample"));
  ClassLabels read{labels.to(torch::kInt64).reshape(shape).contiguous(), {}};
  const int64_t* begin = read.classes.data_ptr<int64_t>();
  const int64_t* end = begin + read.classes.numel();
  const auto bad = std::find_if(begin, end, [&](int64_t v) { return (v < 0 || v >= classes) && v != ignore; });
  if (bad != end) {
    return absl::InvalidArgumentError(
        absl::StrCat("a label is ", *bad, " and there are ", classes, " classes; want labels from 0 to ", classes - 1));
  }
  if (std::find(begin, end, ignore) == end) return read;
  read.ignored = read.classes == ignore;
  read.classes = read.classes.masked_fill(read.ignored, 0);
  return read;
}

torch::Tensor WithoutIgnored(const torch::Tensor& loss, const ClassLabels& labels) {
  return labels.ignored.defined() ? loss.masked_fill(labels.ignored, 0) : loss;
}

// A probability of 0 gives 1e20, as in Fluid, and not infinity.
torch::Tensor NegativeLog(const torch::Tensor& x) { return at::clamp_max(-at::log(x), 1e20); }

absl::Status CrossEntropy(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &label = call.In("Label");
  if (call.Bool("soft_label")) return call.Give("Y", (label * NegativeLog(x)).sum(-1, /*keepdim=*/true), "X");
  ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(x, label, -1, call.Int("ignore_index")));
  return call.Give("Y", WithoutIgnored(NegativeLog(x.gather(-1, labels.classes)), labels), "X");
}

absl::Status CrossEntropy2(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(x, call.In("Label"), -1, call.Int("ignore_index")));
  const torch::Tensor match = x.gather(-1, labels.classes);
  call.SetOut("MatchX", match);
  call.SetOut("XShape", x.detach());
  return call.Give("Y", WithoutIgnored(NegativeLog(match), labels), "X");
}

absl::Status SoftmaxWithCrossEntropy(KernelCall& call) {
  const torch::Tensor &logits = call.In("Logits"), &label = call.In("Label");
  const int64_t axis = call.Int("axis");
  const Lod lod = call.LodOf("Logits");
  const torch::Tensor logs = at::log_softmax(logits, axis);
  torch::Tensor loss;
  if (call.Bool("soft_label")) {
    loss = -(label * logs).sum(axis, /*keepdim=*/true);
  } else {
    ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(logits, label, axis, call.Int("ignore_index")));
    loss = WithoutIgnored(-logs.gather(axis, labels.classes), labels);
  }
  if (call.Wants("Softmax")) call.SetOut("Softmax", at::softmax(logits, axis), lod);
  call.SetOut("Loss", loss, lod);
  return absl::OkStatus();
}

absl::Status SigmoidCrossEntropy(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &label = call.In("Label");
  const torch::Tensor ignored = label == static_cast<double>(call.Int("ignore_index"));
  torch::Tensor loss = (LogOnePlusExp(x) - x * label).masked_fill(ignored, 0);
  if (call.Bool("normalize")) {
    const auto counted = static_cast<double>(ignored.numel() - ignored.sum().item<int64_t>());
    loss = loss / std::max(counted, 1e-5);
  }
  return call.Give(loss);
}

absl::Status LogLoss(KernelCall& call) {
  const torch::Tensor &p = call.In("Predicted"), &label = call.In("Labels");
  const double epsilon = call.Float("epsilon");
  return call.Give("Loss", -label * at::log(p + epsilon) - (1 - label) * at::log(1 - p + epsilon), "Predicted");
}

absl::Status BceLoss(KernelCall& call) {
  return call.Give(at::binary_cross_entropy(call.In("X"), call.In("Label"), {}, at::Reduction::None));
}

// The mean over the other classes of log(1 + exp(x[other] - x[label])).
absl::Status BprLoss(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(x, call.In("Label"), -1, -1));
  const torch::Tensor apart = LogOnePlusExp(x - x.gather(-1, labels.classes));
  const torch::Tensor others = at::ones_like(x.detach()).scatter(-1, labels.classes, 0);
  const auto count = static_cast<double>(std::max<int64_t>(x.size(-1) - 1, 1));
  return call.Give("Y", (apart * others).sum(-1, /*keepdim=*/true) / count, "X");
}

absl::Status HingeLoss(KernelCall& call) {
  return call.Give("Loss", at::relu(1 - (call.In("Labels") * 2 - 1) * call.In("Logits")), "Logits");
}

absl::Status RankLoss(KernelCall& call) {
  const torch::Tensor apart = call.In("Left") - call.In("Right");
  return call.Give("Out", LogOnePlusExp(apart) - call.In("Label") * apart, "Label");
}

absl::Status MarginRankLoss(KernelCall& call) {
  const torch::Tensor out = at::relu(-call.In("Label") * (call.In("X1") - call.In("X2")) + call.Float("margin"));
  if (call.Wants("Activated")) call.SetOut("Activated", (out.detach() > 0).to(out.scalar_type()));
  return call.Give("Out", out, "Label");
}

absl::Status HuberLoss(KernelCall& call) {
  const double delta = call.Float("delta");
  const torch::Tensor residual = call.In("Y") - call.In("X"), size = at::abs(residual);
  const torch::Tensor loss = at::where(size <= delta, residual * residual * 0.5, (size - 0.5 * delta) * delta);
  call.SetOut("Residual", residual);
  return call.Give(loss);
}

torch::Tensor SumOfSample(const torch::Tensor& x) { return x.reshape({x.size(0), -1}).sum(1, /*keepdim=*/true); }

absl::Status SmoothL1Loss(KernelCall& call) {
  const double sigma2 = call.Float("sigma") * call.Float("sigma");
  torch::Tensor apart = call.In("X") - call.In("Y");
  if (call.Has("InsideWeight")) apart = apart * call.In("InsideWeight");
  const torch::Tensor size = at::abs(apart);
  torch::Tensor loss = at::where(size < 1 / sigma2, apart * apart * (0.5 * sigma2), size - 0.5 / sigma2);
  if (call.Has("OutsideWeight")) loss = loss * call.In("OutsideWeight");
  call.SetOut("Diff", apart);
  return call.Give(SumOfSample(loss));
}

absl::Status SquaredDistance(KernelCall& call) {
  const torch::Tensor apart = call.In("X") - call.In("Y");
  call.SetOut("sub_result", apart);
  return call.Give(SumOfSample(apart * apart));
}

absl::Status KlDivLoss(KernelCall& call) {
  const torch::Tensor &x = call.In("X"), &target = call.In("Target");
  const torch::Tensor known = target.detach() > 0;
  const torch::Tensor safe = at::where(known, target, at::ones_like(target));
  torch::Tensor loss = (target * (at::log(safe) - x)).masked_fill(at::logical_not(known), 0);
  const std::string& reduction = call.String("reduction");
  if (reduction == "none") return call.Give("Loss", loss, "X");
  loss = loss.sum();
  if (reduction == "mean") loss = loss / static_cast<double>(x.numel());
  if (reduction == "batchmean") loss = loss / static_cast<double>(x.size(0));
  call.SetOut("Loss", loss.reshape({1}));
  return absl::OkStatus();
}

// A label below -1: not clicked; below 0: clicked; from 0 on: the same with a teacher's score of label, or label - 1.
absl::Status TeacherStudentLoss(KernelCall& call) {
  const torch::Tensor& label = call.In("Label");
  torch::Tensor x = call.In("X");
  const torch::Tensor inside =
      at::logical_and(x<call.Float("soft_max_up_bound"), x> call.Float("soft_max_lower_bound"));
  x = at::where(inside, x, x.detach());  // no gradient beyond the bounds
  const torch::Tensor student = LogOnePlusExp(x);
  const torch::Tensor clicked = at::logical_or(at::logical_and(label >= -1, label < 0), label >= 1);
  const torch::Tensor score = at::where(label >= 1, label - 1, label);
  const torch::Tensor click_part = student - at::where(clicked, x, at::zeros_like(x));
  const torch::Tensor teacher_part = at::where(label >= 0, student - x * score, at::zeros_like(x));
  return call.Give("Y", click_part + teacher_part, "X");
}

constexpr KernelRow kLossKernels[] = {
    {"cross_entropy", CrossEntropy},
    {"cross_entropy2", CrossEntropy2},
    {"softmax_with_cross_entropy", SoftmaxWithCrossEntropy},
    {"sigmoid_cross_entropy_with_logits", SigmoidCrossEntropy},
    {"log_loss", LogLoss},
    {"bce_loss", BceLoss},
    {"bpr_loss", BprLoss},
    {"hinge_loss", HingeLoss},
    {"rank_loss", RankLoss},
    {"margin_rank_loss", MarginRankLoss},
    {"huber_loss", HuberLoss},
    {"smooth_l1_loss", SmoothL1Loss},
    {"squared_l2_distance", SquaredDistance},
    {"kldiv_loss", KlDivLoss},
    {"teacher_student_sigmoid_loss", TeacherStudentLoss},
};

}  // namespace

std::span<const KernelRow> LossKernels() { return kLossKernels; }

}  // namespace regatta::exec
