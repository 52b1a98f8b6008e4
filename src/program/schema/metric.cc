// Metrics. Their states are persistable variables that they read and write.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

absl::Status InferAccuracy(InferContext& context) {
  RETURN_IF_ERROR(WantIntegers(context, "Label"));
  context.Set("Accuracy", {1}, DataType::kFloat32);
  context.Set("Correct", {1}, DataType::kInt32);
  context.Set("Total", {1}, DataType::kInt32);
  return absl::OkStatus();
}

// Predict holds the probability of a click in its last column.
absl::Status InferAuc(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("Predict", 2));
  const Shape &predict = context.ShapeOf("Predict"), &label = context.ShapeOf("Label");
  if (!predict.empty() && !label.empty() && !MayEqual(predict[0], label[0]))
    return context.Refuse({"Predict", "Label"}, "want as many labels as predictions");
  if (!predict.empty() && predict[1] > 2)
    return context.Refuse({"Predict"}, "want [n, 2], the probabilities of both classes (softmax), or [n, 1]");
  context.Set("AUC", {1}, DataType::kFloat64);
  return absl::OkStatus();
}

absl::Status InferPrecisionRecall(InferContext& context) {
  context.Set("BatchMetrics", {6}, DataType::kFloat32);
  context.Set("AccumMetrics", {6}, DataType::kFloat32);
  context.Set("AccumStatesInfo", {context.attributes().Int("class_number"), 4}, DataType::kFloat32);
  return absl::OkStatus();
}

absl::Status InferPairs(InferContext& context) {
  for (const char* slot : {"PositivePair", "NegativePair", "NeutralPair"}) context.Set(slot, {1}, DataType::kFloat32);
  return absl::OkStatus();
}

absl::Status InferEditDistance(InferContext& context) {
  context.Set("Out", {kUnknownExtent, 1}, DataType::kFloat32);
  context.Set("SequenceNum", {1}, DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferChunkEval(InferContext& context) {
  for (const char* slot : {"Precision", "Recall", "F1-Score"}) context.Set(slot, {1}, DataType::kFloat32);
  for (const char* slot : {"NumInferChunks", "NumLabelChunks", "NumCorrectChunks"})
    context.Set(slot, {1}, DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferMeanIou(InferContext& context) {
  const int64_t classes = context.attributes().Int("num_classes");
  context.Set("OutMeanIou", {1}, DataType::kFloat32);
  context.Set("OutWrong", {classes}, DataType::kInt32);
  context.Set("OutCorrect", {classes}, DataType::kInt32);
  return absl::OkStatus();
}

constexpr OpRow kMetricRows[] = {
    {"accuracy", "Out Indices Label", "Accuracy Correct Total", "", InferAccuracy},
    {"auc", "Predict Label StatPos StatNeg", "AUC StatPosOut StatNegOut",
     "curve:string=ROC|PR num_thresholds:int=8191 slide_steps:int=1", InferAuc},
    {"precision_recall", "MaxProbs Indices Labels Weights? StatesInfo?", "BatchMetrics AccumMetrics AccumStatesInfo",
     "class_number:int", InferPrecisionRecall},
    {"positive_negative_pair",
     "Score Label QueryID AccumulatePositivePair? AccumulateNegativePair? AccumulateNeutralPair? Weight?",
     "PositivePair NegativePair NeutralPair?", "column:int=0", InferPairs},
    {"edit_distance", "Hyps Refs HypsLength? RefsLength?", "SequenceNum Out", "normalized:bool=false",
     InferEditDistance},
    {"chunk_eval", "Inference Label SeqLength?",
     "Precision Recall F1-Score NumInferChunks NumLabelChunks NumCorrectChunks",
     "num_chunk_types:int chunk_scheme:string=IOB|IOE|IOBES|plain excluded_chunk_types:ints=[]", InferChunkEval},
    {"mean_iou", "Predictions Labels InWrongs*? InCorrects*? InMeanIou*?", "OutMeanIou OutWrong OutCorrect",
     "num_classes:int", InferMeanIou},
};

}  // namespace

std::span<const OpRow> MetricRows() { return kMetricRows; }

}  // namespace regatta::program
