#include "program/layers/metric.h"

namespace regatta::program::layers {

absl::StatusOr<Variable*> Accuracy(ProgramBuilder& builder, Variable* input, Variable* label, int64_t k,
                                   Variable* correct, Variable* total) {
  LayerCall layer(builder, "accuracy"), top(builder, "top_k");
  ASSIGN_OR_RETURN(Variable * values, top.Temporary(input->dtype));
  ASSIGN_OR_RETURN(Variable * indices, top.Temporary(DataType::kInt64));
  RETURN_IF_ERROR(
      builder.Append("top_k", {{"X", input}}, {{"Out", values}, {"Indices", indices}}, {{"k", k}}).status());
  ASSIGN_OR_RETURN(Variable * accuracy, layer.Temporary(DataType::kFloat32));
  for (Variable** count : {&correct, &total}) {
    if (*count != nullptr) continue;
    ASSIGN_OR_RETURN(*count, layer.Temporary(DataType::kInt32));
  }
  RETURN_IF_ERROR(builder
                      .Append("accuracy", {{"Out", values}, {"Indices", indices}, {"Label", label}},
                              {{"Accuracy", accuracy}, {"Correct", correct}, {"Total", total}})
                      .status());
  return accuracy;
}

namespace {

absl::Status AppendAuc(ProgramBuilder& builder, Variable* input, Variable* label, Variable* auc, Variable* positive,
                       Variable* negative, const AucOptions& options, int64_t slide_steps) {
  return builder
      .Append("auc", {{"Predict", input}, {"Label", label}, {"StatPos", positive}, {"StatNeg", negative}},
              {{"AUC", auc}, {"StatPosOut", positive}, {"StatNegOut", negative}},
              {{"curve", options.curve}, {"num_thresholds", options.num_thresholds}, {"slide_steps", slide_steps}})
      .status();
}

}  // namespace

absl::StatusOr<Auc> AucOf(ProgramBuilder& builder, Variable* input, Variable* label, const AucOptions& options) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (options.num_thresholds < 1 || options.num_thresholds > kMost)
    return builder.Error(absl::StrCat("num_thresholds is ", options.num_thresholds, "; want 1 to ", kMost));
  if (options.slide_steps < 0 || options.slide_steps > 1024)
    return builder.Error(absl::StrCat("slide_steps is ", options.slide_steps, "; want 0 to 1024"));
  LayerCall layer(builder, "auc");
  Auc made;
  ASSIGN_OR_RETURN(made.auc, layer.Temporary(DataType::kFloat64));
  ASSIGN_OR_RETURN(made.batch_auc, layer.Temporary(DataType::kFloat64));
  // The counts of the batches that are looked back to, their sum, and the place of the oldest; then the counts of all.
  const int64_t buckets = options.num_thresholds + 1;
  const Shape batch = {(1 + options.slide_steps) * buckets + 1}, all = {1, buckets};
  for (size_t i = 0; i < made.states.size(); ++i) {
    ASSIGN_OR_RETURN(made.states[i],
                     builder.CreateState("", i < 2 ? batch : all, DataType::kInt64, Initializer::Constant(0)));
  }
  RETURN_IF_ERROR(
      AppendAuc(builder, input, label, made.batch_auc, made.states[0], made.states[1], options, options.slide_steps));
  RETURN_IF_ERROR(AppendAuc(builder, input, label, made.auc, made.states[2], made.states[3], options, 0));
  return made;
}

}  // namespace regatta::program::layers
