#include "program/layers/loss.h"

#include "base/printable.h"

namespace regatta::program::layers {

absl::StatusOr<Variable*> CrossEntropy(ProgramBuilder& builder, Variable* input, Variable* label,
                                       const CrossEntropyOptions& options) {
  if (options.soft_label) {
    return ApplyOperator(builder, "cross_entropy", {{"X", input}, {"Label", label}},
                         {{"soft_label", true}, {"ignore_index", options.ignore_index}}, "Y");
  }
  LayerCall layer(builder, "cross_entropy2");
  Variable *loss = nullptr, *shape = nullptr, *match = nullptr;
  for (Variable** made : {&loss, &shape, &match}) {
    ASSIGN_OR_RETURN(*made, layer.Temporary(input->dtype));
  }
  RETURN_IF_ERROR(builder
                      .Append("cross_entropy2", {{"X", input}, {"Label", label}},
                              {{"Y", loss}, {"XShape", shape}, {"MatchX", match}},
                              {{"ignore_index", options.ignore_index}})
                      .status());
  return loss;
}

absl::StatusOr<SoftmaxLoss> SoftmaxWithCrossEntropy(ProgramBuilder& builder, Variable* logits, Variable* label,
                                                    const SoftmaxWithCrossEntropyOptions& options) {
  LayerCall layer(builder, "softmax_with_cross_entropy");
  SoftmaxLoss made;
  ASSIGN_OR_RETURN(made.softmax, layer.Temporary(logits->dtype));
  ASSIGN_OR_RETURN(made.loss, layer.Temporary(logits->dtype));
  RETURN_IF_ERROR(builder
                      .Append("softmax_with_cross_entropy", {{"Logits", logits}, {"Label", label}},
                              {{"Softmax", made.softmax}, {"Loss", made.loss}},
                              {{"soft_label", options.soft_label},
                               {"ignore_index", options.ignore_index},
                               {"numeric_stable_mode", options.numeric_stable_mode},
                               {"axis", options.axis}})
                      .status());
  return made;
}

absl::StatusOr<Variable*> Nce(ProgramBuilder& builder, Variable* input, Variable* label, const NceOptions& options) {
  if (options.num_total_classes < 1 || options.num_neg_samples < 1)
    return builder.Error("num_total_classes and num_neg_samples must be 1 or more");
  if (options.sampler != "uniform" && options.sampler != "log_uniform") {
    return builder.Error(
        absl::StrCat("sampler is '", base::Printable(options.sampler), "'; want uniform or log_uniform"));
  }
  if (input->shape.size() != 2 || input->shape[1] < 1)
    return builder.Error(absl::StrCat("input is ", ShapeText(input->shape), "; want [-1, n]"));
  LayerCall layer(builder, "nce", options.name);
  ASSIGN_OR_RETURN(Variable * weight,
                   layer.Weight(options.weight, {options.num_total_classes, input->shape[1]}, input->dtype));
  Variable *bias = nullptr, *cost = nullptr, *logits = nullptr;
  if (options.bias.wanted) {
    ASSIGN_OR_RETURN(bias, layer.Bias(options.bias, {options.num_total_classes, 1}, input->dtype));
  }
  for (Variable** made : {&cost, &logits}) {
    ASSIGN_OR_RETURN(*made, layer.Temporary(input->dtype));
  }
  ASSIGN_OR_RETURN(Variable * labels, layer.Temporary(label->dtype));
  RETURN_IF_ERROR(builder
                      .Append("nce",
                              {{"Input", input},
                               {"Label", label},
                               {"Weight", weight},
                               {"Bias", bias},
                               {"SampleWeight", options.sample_weight}},
                              {{"Cost", cost}, {"SampleLogits", logits}, {"SampleLabels", labels}},
                              {{"num_total_classes", options.num_total_classes},
                               {"num_neg_samples", options.num_neg_samples},
                               {"sampler", int64_t{options.sampler == "uniform" ? 0 : 1}},
                               {"seed", options.seed},
                               {"is_sparse", options.is_sparse},
                               {"remote_prefetch", options.is_sparse}})
                      .status());
  ASSIGN_OR_RETURN(Variable * out, builder.CreateVariable("tmp", cost->dtype));
  const double share = 1.0 / static_cast<double>(options.num_neg_samples + 1);
  RETURN_IF_ERROR(builder.Append("scale", {{"X", cost}}, {{"Out", out}}, {{"scale", share}}).status());
  return out;
}

absl::StatusOr<Variable*> Hsigmoid(ProgramBuilder& builder, Variable* input, Variable* label,
                                   const HsigmoidOptions& options) {
  const bool own_tree = options.path_table != nullptr || options.path_code != nullptr;
  if (own_tree && (options.path_table == nullptr || options.path_code == nullptr))
    return builder.Error("a tree of one's own needs both path_table and path_code");
  if (options.num_classes < 2)
    return builder.Error(absl::StrCat("num_classes is ", options.num_classes, "; want 2 or more"));
  if (input->shape.size() != 2 || input->shape[1] < 1)
    return builder.Error(absl::StrCat("input is ", ShapeText(input->shape), "; want [-1, n]"));
  LayerCall layer(builder, "hierarchical_sigmoid", options.name);
  ASSIGN_OR_RETURN(Variable * out, layer.Temporary(input->dtype));
  ASSIGN_OR_RETURN(Variable * sums, layer.Temporary(input->dtype));
  const int64_t nodes = own_tree ? options.num_classes : options.num_classes - 1;
  ASSIGN_OR_RETURN(Variable * weight, layer.Weight(options.weight, {nodes, input->shape[1]}, input->dtype));
  Variable* bias = nullptr;
  if (options.bias.wanted) {
    ASSIGN_OR_RETURN(bias, layer.Bias(options.bias, {nodes, 1}, input->dtype));
  }
  const bool sparse = options.is_sparse && own_tree;
  RETURN_IF_ERROR(
      builder
          .Append("hierarchical_sigmoid",
                  {{"X", input},
                   {"W", weight},
                   {"Label", label},
                   {"PathTable", options.path_table},
                   {"PathCode", options.path_code},
                   {"Bias", bias}},
                  {{"Out", out}, {"PreOut", sums}},
                  {{"num_classes", options.num_classes}, {"is_sparse", sparse}, {"remote_prefetch", sparse}})
          .status());
  return out;
}

}  // namespace regatta::program::layers
