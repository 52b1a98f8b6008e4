#include "program/backward.h"

#include "program/layers/loss.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

class BackwardTest : public NetworkTest {
 protected:
  Names ParametersOf(const std::vector<ParameterGradient>& gradients) {
    Names names;
    for (const ParameterGradient& each : gradients) names.push_back(each.parameter->name);
    return names;
  }
};

TEST_F(BackwardTest, EveryVariableOnTheWayHasAGradient) {
  Variable* loss = FitALine();
  const auto gradients = Must(AppendBackward(builder_, loss));
  EXPECT_EQ(ParametersOf(gradients), (Names{"fc_0.b_0", "fc_0.w_0"}));
  EXPECT_EQ(gradients[1].gradient->name, "fc_0.w_0@GRAD");
  EXPECT_EQ(TypeOf("fc_0.w_0@GRAD"), "float32 [13, 1]");
  EXPECT_EQ(TypeOf("mean_0.tmp_0@GRAD"), "float32 [1]");
  EXPECT_EQ(main_.global_block().Find("x@GRAD"), nullptr);
  EXPECT_EQ(main_.global_block().operations().back()->role, Role::kBackward);
}

TEST_F(BackwardTest, DataThatDoesNotStopGradientsHasOne) {
  Variable* loss = FitALine();
  main_.global_block().Find("x")->stop_gradient = false;
  EXPECT_EQ(ParametersOf(Must(AppendBackward(builder_, loss))), (Names{"fc_0.b_0", "fc_0.w_0"}));
  EXPECT_EQ(TypeOf("x@GRAD"), "float32 [-1, 13]");
}

TEST_F(BackwardTest, AVariableInTheMiddleIsNotLeftOutSilently) {
  Variable* loss = FitALine();
  builder_.set_site({"optimizer.minimize", "train.py", 8});
  EXPECT_EQ(
      AppendBackward(builder_, loss, {}, {"fc_0.tmp_0"}).status().message(),
      "optimizer.minimize (train.py:8): no_grad_set has 'fc_0.tmp_0', which mul computes; want parameters and data "
      "there: set its stop_gradient instead, which holds for every backward pass");
}

TEST_F(BackwardTest, SparseLookupsGiveRows) {
  Variable* ids = Data("ids", {1}, DataType::kInt64);
  Variable* sparse = Must(layers::Embedding(builder_, ids, {.size = {10, 4}, .is_sparse = true}));
  Variable* dense = Must(layers::Embedding(builder_, ids, {.size = {10, 4}}));
  Variable* sum = Must(ApplyOperator(builder_, "elementwise_add", {{"X", sparse}, {"Y", dense}}));
  ASSERT_TRUE(AppendBackward(builder_, Must(layers::Mean(builder_, sum))).ok());
  EXPECT_EQ(TypeOf("embedding_0.w_0@GRAD"), "selected_rows float32 [10, 4]");
  EXPECT_EQ(TypeOf("embedding_1.w_0@GRAD"), "float32 [10, 4]");
}

TEST_F(BackwardTest, OfASparseNceTheBiasIsATensor) {
  Variable* cost = Must(layers::Nce(builder_, Data("x", {8}), Data("y", {1}, DataType::kInt64),
                                    {.num_total_classes = 100, .is_sparse = true}));
  ASSERT_TRUE(AppendBackward(builder_, Must(layers::Mean(builder_, cost))).ok());
  EXPECT_EQ(TypeOf("nce_0.w_0@GRAD"), "selected_rows float32 [100, 8]");
  EXPECT_EQ(TypeOf("nce_0.b_0@GRAD"), "float32 [100, 1]");
}

TEST_F(BackwardTest, ATableThatIsAlsoReadWholeHasATensorAsGradient) {
  Variable* ids = Data("ids", {1}, DataType::kInt64);
  Variable* rows =
      Must(layers::Embedding(builder_, ids, {.size = {10, 4}, .is_sparse = true, .weight = {.name = "table"}}));
  Variable* table = main_.global_block().Find("table");
  Variable* scores = Must(ApplyOperator(builder_, "matmul", {{"X", rows}, {"Y", table}}, {{"transpose_Y", true}}));
  ASSERT_TRUE(AppendBackward(builder_, Must(layers::Mean(builder_, scores))).ok());
  EXPECT_EQ(TypeOf("table@GRAD"), "float32 [10, 4]");
}

TEST_F(BackwardTest, StopGradientTrainableAndNoGradSetAreRespected) {
  Variable* x = Data("x", {4});
  ParameterAttributes frozen;
  frozen.traits.trainable = false;
  Variable* a = Must(layers::Fc(builder_, {x}, {.size = 3, .bias = {.wanted = false}}));
  Variable* b = Must(layers::Fc(builder_, {a}, {.size = 3, .weights = {frozen}, .bias = {.wanted = false}}));
  Variable* c = Must(layers::Fc(builder_, {b}, {.size = 1}));
  Variable* loss = Must(layers::Mean(builder_, c));
  Variable* other = Must(layers::Mean(builder_, b));
  EXPECT_EQ(ParametersOf(Must(AppendBackward(builder_, loss, {}, {"fc_2.b_0"}))), (Names{"fc_2.w_0", "fc_0.w_0"}));
  b->stop_gradient = true;
  EXPECT_EQ(ParametersOf(Must(AppendBackward(builder_, loss))), (Names{"fc_2.b_0", "fc_2.w_0"}));
  builder_.set_site({"optimizer.minimize", "train.py", 8});
  EXPECT_EQ(
      AppendBackward(builder_, other).status().message(),
      "optimizer.minimize (train.py:8): no trainable parameter reaches the loss 'mean_1.tmp_0', so there is nothing "
      "to train; build the network in this program, and look for stop_gradient, trainable=False and no_grad_set");
}

TEST_F(BackwardTest, AListOfParametersIsTaken) {
  Variable* loss = FitALine();
  EXPECT_EQ(ParametersOf(Must(AppendBackward(builder_, loss, {"fc_0.w_0"}))), (Names{"fc_0.w_0"}));
  EXPECT_EQ(AppendBackward(builder_, loss, {"x"}).status().message(),
            "parameter_list has 'x', which is no parameter of the program");
}

TEST_F(BackwardTest, ALossOfManyElementsIsRefused) {
  Variable* x = Data("x", {4});
  EXPECT_EQ(AppendBackward(builder_, Must(layers::Fc(builder_, {x}, {.size = 2}))).status().message(),
            "the loss 'fc_0.tmp_1' is [-1, 2]; want [1]: give minimize the layers.mean of it");
}

TEST_F(BackwardTest, ASecondPassGetsNamesOfItsOwn) {
  Variable* loss = FitALine();
  Must(AppendBackward(builder_, loss));
  const auto second = Must(AppendBackward(builder_, loss));
  EXPECT_EQ(second[0].gradient->name, "fc_0.b_0@GRAD_0");
}

TEST_F(BackwardTest, GradientsOfOtherVariablesCanBeAskedFor) {
  Variable* x = Data("x", {4});
  x->stop_gradient = false;
  Variable* unused = Data("unused", {4});
  Variable* y = Must(ApplyOperator(builder_, "square", {{"X", x}}));
  Variable* weight = Must(ApplyOperator(builder_, "relu", {{"X", x}}));
  const auto gradients = Must(AppendGradients(builder_, {y}, {x, unused}, {weight}));
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_EQ(gradients[0]->name, "x@GRAD");
  EXPECT_EQ(gradients[1], nullptr);
  EXPECT_EQ(OperationText(*main_.global_block().operations().back()),
            "Gradients=x@GRAD <- backward(Targets=square_0.tmp_0, Inputs=x, TargetGradients=relu_0.tmp_0) [backward]");
}

}  // namespace
}  // namespace regatta::program
