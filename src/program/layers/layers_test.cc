// The operations and names that layers make are those of PaddlePaddle 1.8.
#include "program/layers/image.h"
#include "program/layers/loss.h"
#include "program/layers/metric.h"
#include "program/layers/normalization.h"
#include "program/layers/sequence.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

class LayersTest : public NetworkTest {
 protected:
  Variable* Steps(int64_t columns) { return Data("x", {columns}, DataType::kFloat32, 1); }
  Variable* Ids() { return Data("y", {1}, DataType::kInt64); }
  // The name and shape of every variable that the startup program makes.
  std::string Startup() {
    std::string text;
    for (const auto& operation : startup_.global_block().operations())
      absl::StrAppend(&text, text.empty() ? "" : " ", operation->Output("Out")[0],
                      ShapeText(operation->attributes.Ints("shape")));
    return text;
  }
};

TEST_F(LayersTest, Accuracy) {
  EXPECT_EQ(TypeText(*Must(layers::Accuracy(builder_, Data("x", {5}), Ids(), 2))), "float32 [1]");
  EXPECT_EQ(
      OperationsText(main_),
      "Out=top_k_0.tmp_0, Indices=top_k_0.tmp_1 <- top_k(X=x, k: 2)\n"
      "Accuracy=accuracy_0.tmp_0, Correct=accuracy_0.tmp_1, Total=accuracy_0.tmp_2 <- accuracy(Out=top_k_0.tmp_0, "
      "Indices=top_k_0.tmp_1, Label=y)\n");
}

TEST_F(LayersTest, AucKeepsFourStates) {
  const layers::Auc auc = Must(layers::AucOf(builder_, Data("x", {2}), Ids()));
  EXPECT_EQ(TypeText(*auc.auc), "float64 [1]");
  EXPECT_EQ(OperationsText(main_),
            "AUC=auc_0.tmp_1, StatPosOut=_generated_var_0, StatNegOut=_generated_var_1 <- auc(Predict=x, Label=y, "
            "StatPos=_generated_var_0, StatNeg=_generated_var_1, num_thresholds: 4095)\n"
            "AUC=auc_0.tmp_0, StatPosOut=_generated_var_2, StatNegOut=_generated_var_3 <- auc(Predict=x, Label=y, "
            "StatPos=_generated_var_2, StatNeg=_generated_var_3, num_thresholds: 4095, slide_steps: 0)\n");
  EXPECT_EQ(Startup(),
            "_generated_var_0[8193] _generated_var_1[8193] _generated_var_2[1, 4096] _generated_var_3[1, 4096]");
  EXPECT_TRUE(auc.states[0]->persistable);
  EXPECT_EQ(auc.states[0]->dtype, DataType::kInt64);
  EXPECT_EQ(layers::AucOf(builder_, Data("x", {2}), Ids(), {.num_thresholds = 0}).status().message(),
            "num_thresholds is 0; want 1 to 16777216");
}

TEST_F(LayersTest, SequenceConvPool) {
  Must(layers::SequenceConvPool(builder_, Steps(8), {.num_filters = 5, .activation = "tanh"}, "sqrt"));
  EXPECT_EQ(
      OperationsText(main_),
      "Out=sequence_conv_0.tmp_0 <- sequence_conv(X=x, Filter=sequence_conv_0.w_0, contextLength: 3, contextStart: "
      "-1)\n"
      "Out=sequence_conv_0.tmp_1 <- elementwise_add(X=sequence_conv_0.tmp_0, Y=sequence_conv_0.b_0, axis: 1)\n"
      "Out=sequence_conv_0.tmp_2 <- tanh(X=sequence_conv_0.tmp_1)\n"
      "Out=sequence_pool_0.tmp_0, MaxIndex=sequence_pool_0.tmp_1 <- sequence_pool(X=sequence_conv_0.tmp_2, pooltype: "
      "\"SQRT\")\n");
  EXPECT_EQ(Startup(), "sequence_conv_0.w_0[24, 5] sequence_conv_0.b_0[5]");
}

TEST_F(LayersTest, BatchNormKeepsMovingStatistics) {
  Must(layers::BatchNorm(builder_, Data("x", {5}), {.activation = "relu"}));
  EXPECT_EQ(
      OperationsText(main_),
      "Y=batch_norm_0.tmp_2, MeanOut=batch_norm_0.w_1, VarianceOut=batch_norm_0.w_2, SavedMean=batch_norm_0.tmp_0, "
      "SavedVariance=batch_norm_0.tmp_1 <- batch_norm(X=x, Scale=batch_norm_0.w_0, Bias=batch_norm_0.b_0, "
      "Mean=batch_norm_0.w_1, Variance=batch_norm_0.w_2)\n"
      "Out=batch_norm_0.tmp_3 <- relu(X=batch_norm_0.tmp_2)\n");
  EXPECT_FALSE(main_.global_block().Find("batch_norm_0.w_1")->parameter->trainable);
  EXPECT_EQ(Startup(), "batch_norm_0.w_0[5] batch_norm_0.b_0[5] batch_norm_0.w_1[5] batch_norm_0.w_2[5]");
}

TEST_F(LayersTest, LayerNormMayLeaveItsParametersOut) {
  Must(layers::LayerNorm(builder_, Data("x", {5, 3}), {.begin_norm_axis = 2, .bias = {.wanted = false}}));
  EXPECT_EQ(OperationsText(main_),
            "Y=layer_norm_0.tmp_2, Mean=layer_norm_0.tmp_0, Variance=layer_norm_0.tmp_1 <- layer_norm(X=x, "
            "Scale=layer_norm_0.w_0, begin_norm_axis: 2)\n");
  EXPECT_EQ(Startup(), "layer_norm_0.w_0[3]");
}

TEST_F(LayersTest, DataNormHasNamesOfItsOwn) {
  Must(layers::DataNorm(builder_, Data("x", {8}), {}));
  EXPECT_EQ(Startup(), "dn.batch_size[8] dn.batch_sum[8] dn.batch_square_sum[8]");
}

TEST_F(LayersTest, DropoutTakesTheSeedOfTheProgram) {
  Must(layers::Dropout(builder_, Data("x", {8}), {.probability = 0.3}));
  main_.set_random_seed(5);
  Must(layers::Dropout(builder_, Data("x", {8}), {.probability = 0.3, .implementation = "upscale_in_train"}));
  Must(layers::Dropout(builder_, Data("x", {8}), {.seed = 7}));
  EXPECT_EQ(OperationsText(main_),
            "Out=dropout_0.tmp_0, Mask=dropout_0.tmp_1 <- dropout(X=x, dropout_prob: 0.3)\n"
            "Out=dropout_1.tmp_0, Mask=dropout_1.tmp_1 <- dropout(X=x, dropout_implementation: \"upscale_in_train\", "
            "dropout_prob: 0.3, fix_seed: true, seed: 5)\n"
            "Out=dropout_2.tmp_0, Mask=dropout_2.tmp_1 <- dropout(X=x, fix_seed: true, seed: 7)\n");
}

TEST_F(LayersTest, LstmAndGru) {
  Must(layers::DynamicLstm(builder_, Steps(8), {.size = 8}));
  Variable* gates = Data("gates", {9}, DataType::kFloat32, 1);
  EXPECT_EQ(TypeText(*Must(layers::DynamicGru(builder_, gates, {.size = 3}))), "float32 [-1, 3]");
  EXPECT_EQ(OperationsText(main_),
            "Hidden=lstm_0.tmp_0, Cell=lstm_0.tmp_1, BatchGate=lstm_0.tmp_2, BatchCellPreAct=lstm_0.tmp_3 <- "
            "lstm(Input=x, Weight=lstm_0.w_0, Bias=lstm_0.b_0)\n"
            "BatchGate=gru_0.tmp_1, BatchResetHiddenPrev=gru_0.tmp_2, BatchHidden=gru_0.tmp_3, Hidden=gru_0.tmp_0 <- "
            "gru(Input=gates, Weight=gru_0.w_0, Bias=gru_0.b_0)\n");
  EXPECT_EQ(Startup(), "lstm_0.w_0[2, 8] lstm_0.b_0[1, 14] gru_0.w_0[3, 9] gru_0.b_0[1, 9]");
  EXPECT_EQ(
      layers::DynamicLstm(builder_, gates, {.size = 8}).status().message(),
      "lstm: Input is [-1, 9] and Weight is [2, 8]: Input must have 4 columns for each of the cell: fc(size=4 * n) "
      "before dynamic_lstm(size=4 * n)");
}

TEST_F(LayersTest, ConvolutionAndPooling) {
  Variable* image = Data("x", {1, 28, 28});
  Variable* conv = Must(layers::Conv2d(builder_, image, {.num_filters = 20, .filter_size = {5}, .activation = "relu"}));
  Variable* pool = Must(layers::Pool2d(builder_, conv, {.size = {2}, .stride = {2}}));
  EXPECT_EQ(TypeText(*pool), "float32 [-1, 20, 12, 12]");
  EXPECT_EQ(OperationsText(main_),
            "Output=conv2d_0.tmp_0 <- conv2d(Input=x, Filter=conv2d_0.w_0)\n"
            "Out=conv2d_0.tmp_1 <- elementwise_add(X=conv2d_0.tmp_0, Y=conv2d_0.b_0, axis: 1)\n"
            "Out=conv2d_0.tmp_2 <- relu(X=conv2d_0.tmp_1)\n"
            "Out=pool2d_0.tmp_0 <- pool2d(X=conv2d_0.tmp_2, ksize: [2, 2], pooling_type: \"max\", strides: [2, 2])\n");
  EXPECT_EQ(OperationText(*startup_.global_block().operations()[0]),
            "Out=conv2d_0.w_0 <- gaussian_random(shape: [20, 1, 5, 5], std: 0.282842712474619)");
  EXPECT_EQ(layers::Pool2d(builder_, conv, {}).status().message(),
            "pool_size is missing; give it, or global_pooling=True");
}

TEST_F(LayersTest, Losses) {
  Variable* x = Data("x", {8});
  Must(layers::CrossEntropy(builder_, x, Ids()));
  Must(layers::CrossEntropy(builder_, x, Data("soft", {8}), {.soft_label = true}));
  EXPECT_EQ(TypeText(*Must(layers::SoftmaxWithCrossEntropy(builder_, x, Ids())).softmax), "float32 [-1, 8]");
  EXPECT_EQ(OperationsText(main_),
            "Y=cross_entropy2_0.tmp_0, XShape=cross_entropy2_0.tmp_1, MatchX=cross_entropy2_0.tmp_2 <- "
            "cross_entropy2(X=x, Label=y)\n"
            "Y=cross_entropy_0.tmp_0 <- cross_entropy(X=x, Label=soft, soft_label: true)\n"
            "Softmax=softmax_with_cross_entropy_0.tmp_0, Loss=softmax_with_cross_entropy_0.tmp_1 <- "
            "softmax_with_cross_entropy(Logits=x, Label=y)\n");
}

TEST_F(LayersTest, SampledClassifiers) {
  Variable* x = Data("x", {8});
  EXPECT_EQ(TypeText(*Must(layers::Nce(builder_, x, Ids(), {.num_total_classes = 100}))), "float32 [-1, 1]");
  EXPECT_EQ(TypeText(*Must(layers::Hsigmoid(builder_, x, Ids(), {.num_classes = 100}))), "float32 [-1, 1]");
  EXPECT_EQ(Startup(),
            "nce_0.w_0[100, 8] nce_0.b_0[100, 1] hierarchical_sigmoid_0.w_0[99, 8] hierarchical_sigmoid_0.b_0[99, 1]");
  EXPECT_EQ(OperationText(*main_.global_block().operations()[1]),
            "Out=tmp_0 <- scale(X=nce_0.tmp_0, scale: 0.09090909090909091)");
}

}  // namespace
}  // namespace regatta::program
