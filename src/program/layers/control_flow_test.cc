#include "program/layers/control_flow.h"

#include "program/layers/arithmetic.h"
#include "program/layers/dynamic_rnn.h"
#include "program/optimizers/optimizer.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

class ControlFlowTest : public NetworkTest {
 protected:
  Variable* Counter(double value) {
    return Must(ApplyOperator(builder_, "fill_constant", {},
                              {{"shape", Shape{1}}, {"dtype", CodeOf(DataType::kInt64)}, {"value", value}}));
  }
  std::string Inside(size_t block) {
    std::string text;
    for (const auto& operation : main_.block(block).operations())
      absl::StrAppend(&text, OperationText(*operation), "\n");
    return text;
  }
};

TEST_F(ControlFlowTest, ALoopNamesWhatItReadsAndWrites) {
  Variable *i = Counter(0), *n = Counter(10), *sum = Data("x", {3});
  Variable* condition = Must(ApplyOperator(builder_, "less_than", {{"X", i}, {"Y", n}}));
  const layers::Body body = layers::Body::Open(builder_);
  Variable* twice = Must(layers::CombineWithNumber(builder_, "elementwise_mul", sum, 2, layers::Side::kRight));
  Must(builder_.Append("assign", {{"X", twice}}, {{"Out", sum}}));
  Must(builder_.Append("increment", {{"X", i}}, {{"Out", i}}));
  Must(builder_.Append("less_than", {{"X", i}, {"Y", n}}, {{"Out", condition}}));
  ASSERT_TRUE(layers::CloseWhile(builder_, body, condition).ok());
  EXPECT_EQ(OperationText(*main_.global_block().operations().back()),
            "Out=[x, fill_constant_0.tmp_0, less_than_0.tmp_0], StepScopes=_generated_var_0 <- while(X=[x, "
            "fill_constant_0.tmp_0, fill_constant_1.tmp_0], Condition=less_than_0.tmp_0, sub_block: block 1)");
  EXPECT_EQ(&builder_.block(), &main_.global_block());
  EXPECT_EQ(main_.global_block().FindHere("tmp_0"), nullptr);
}

TEST_F(ControlFlowTest, WhatABodyWritesFirstItDoesNotRead) {
  Variable *i = Counter(0), *kept = Counter(1);
  const layers::Body body = layers::Body::Open(builder_);
  Must(builder_.Append("increment", {{"X", i}}, {{"Out", kept}}));
  Must(builder_.Append("increment", {{"X", kept}}, {{"Out", kept}}));
  EXPECT_EQ(body.Reads(), std::vector<Variable*>{i});
  EXPECT_EQ(body.Writes(), std::vector<Variable*>{kept});
}

TEST_F(ControlFlowTest, ALoopThatNeverEndsIsRefused) {
  Variable *i = Counter(0), *n = Counter(10);
  Variable* condition = Must(ApplyOperator(builder_, "less_than", {{"X", i}, {"Y", n}}));
  const layers::Body body = layers::Body::Open(builder_);
  Must(builder_.Append("increment", {{"X", i}}, {{"Out", i}}));
  EXPECT_EQ(layers::CloseWhile(builder_, body, condition).message(),
            "the body never writes its condition 'less_than_0.tmp_0', so it would run for ever; end it with "
            "layers.less_than(..., cond=less_than_0.tmp_0)");
  EXPECT_EQ(layers::CloseWhile(builder_, body, i).message(),
            "the condition 'fill_constant_0.tmp_0' is int64 [1]; want bool [1], as layers.less_than gives of two [1]");
}

TEST_F(ControlFlowTest, OfASwitchTheFirstTrueCaseIsTaken) {
  Variable *step = Counter(0), *rate = Counter(1);
  layers::Switch choice(builder_);
  EXPECT_EQ(choice.Default().status().message(), "Switch has a default and no case; give it a case first");
  for (const double limit : {10.0, 20.0}) {
    Variable* below = Must(layers::CombineWithNumber(builder_, "less_than", step, limit, layers::Side::kRight));
    Variable* taken = Must(choice.Case(below));
    const layers::Body body = layers::Body::Open(builder_);
    Must(builder_.Append("increment", {{"X", rate}}, {{"Out", rate}}));
    ASSERT_TRUE(layers::CloseBranch(builder_, body, taken).ok());
  }
  EXPECT_EQ(Must(choice.Default())->name, "logical_and_0.tmp_0");
  EXPECT_NE(OperationsText(main_).find(
                "Out=logical_and_0.tmp_0 <- logical_and(X=logical_not_0.tmp_0, Y=logical_not_1.tmp_0)\n"
                "Out=logical_and_1.tmp_0 <- logical_and(X=logical_not_0.tmp_0, Y=tmp_3)\n"),
            std::string::npos)
      << OperationsText(main_);
  EXPECT_EQ(OperationText(*main_.global_block().operations().back()),
            "Out=fill_constant_1.tmp_0, Scope=_generated_var_1 <- conditional_block(Cond=logical_and_1.tmp_0, "
            "Input=fill_constant_1.tmp_0, is_scalar_condition: true, sub_block: block 2)");
}

TEST_F(ControlFlowTest, ADynamicRnnIsALoopOverSteps) {
  Variable* sentence = Data("sentence", {8}, DataType::kFloat32, 1);
  layers::DynamicRnn rnn(builder_);
  EXPECT_EQ(rnn.StepInput(sentence).status().message(), "DynamicRNN.step_input belongs into `with rnn.block():`");
  ASSERT_TRUE(rnn.Begin().ok());
  EXPECT_EQ(rnn.Memory({.shape = {4}}).status().message(), "DynamicRNN.memory needs a step_input before it");
  Variable* word = Must(rnn.StepInput(sentence));
  Variable* before = Must(rnn.Memory({.shape = {4}}));
  EXPECT_EQ(TypeText(*word), "float32 [-1, 8]");
  EXPECT_EQ(TypeText(*before), "float32 [-1, 4]");
  Variable* hidden = Must(layers::Fc(builder_, {word, before}, {.size = 4, .activation = "tanh"}));
  ASSERT_TRUE(rnn.UpdateMemory(before, hidden).ok());
  EXPECT_EQ(rnn.UpdateMemory(word, hidden).message(),
            "DynamicRNN.update_memory: 'read_from_array_0.tmp_0' is no memory; want one that memory() gave");
  ASSERT_TRUE(rnn.Output({hidden}).ok());
  const std::vector<Variable*> outputs = Must(rnn.End());
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(TypeText(*outputs[0]), "float32 [-1, 4]");
  EXPECT_EQ(outputs[0]->lod_level, 1);
  // Parameters of the body belong to the program, and are trained through the loop.
  Variable* loss = Must(layers::Mean(builder_, outputs[0]));
  Optimizer sgd = *Optimizer::Make({.type = "SGD"});
  const Minimized made = Must(sgd.Minimize(builder_, loss));
  ASSERT_EQ(made.gradients.size(), 3u);
  EXPECT_EQ(made.gradients[0].parameter->name, "fc_0.b_0");
  EXPECT_EQ(Inside(1),
            "Out=read_from_array_0.tmp_0 <- read_from_array(X=dynamic_rnn_0.tmp_1, I=fill_constant_0.tmp_0)\n"
            "Out=read_from_array_2.tmp_0 <- read_from_array(X=dynamic_rnn_0.tmp_2, I=fill_constant_0.tmp_0)\n"
            "Out=shrink_rnn_memory_0.tmp_0 <- shrink_rnn_memory(X=read_from_array_2.tmp_0, RankTable=lod_rank_table_0, "
            "I=fill_constant_0.tmp_0)\n"
            "Out=fc_0.tmp_0 <- mul(X=read_from_array_0.tmp_0, Y=fc_0.w_0)\n"
            "Out=fc_0.tmp_1 <- mul(X=shrink_rnn_memory_0.tmp_0, Y=fc_0.w_1)\n"
            "Out=fc_0.tmp_2 <- sum(X=[fc_0.tmp_0, fc_0.tmp_1])\n"
            "Out=fc_0.tmp_3 <- elementwise_add(X=fc_0.tmp_2, Y=fc_0.b_0, axis: 1)\n"
            "Out=fc_0.tmp_4 <- tanh(X=fc_0.tmp_3)\n"
            "Out=dynamic_rnn_0.tmp_3 <- write_to_array(X=fc_0.tmp_4, I=fill_constant_0.tmp_0)\n"
            "Out=fill_constant_0.tmp_0 <- increment(X=fill_constant_0.tmp_0)\n"
            "Out=dynamic_rnn_0.tmp_2 <- write_to_array(X=fc_0.tmp_4, I=fill_constant_0.tmp_0)\n"
            "Out=dynamic_rnn_0.tmp_0 <- less_than(X=fill_constant_0.tmp_0, Y=max_sequence_len_0.tmp_0)\n");
}

TEST_F(ControlFlowTest, NumbersStandOnEitherSide) {
  using layers::Side;
  Variable* x = Data("x", {3});
  Must(layers::CombineWithNumber(builder_, "elementwise_sub", x, 2, Side::kLeft));
  Must(layers::CombineWithNumber(builder_, "elementwise_div", x, 4, Side::kRight));
  Must(layers::CombineWithNumber(builder_, "elementwise_div", x, 1, Side::kLeft));
  Must(layers::CombineWithNumber(builder_, "greater_than", x, 0.5, Side::kRight));
  Variable* ids = Data("ids", {1}, DataType::kInt64);
  EXPECT_EQ(TypeText(*Must(layers::Combine(builder_, "elementwise_mul", x, ids))), "float32 [-1, 3]");
  EXPECT_EQ(OperationsText(main_),
            "Out=tmp_0 <- scale(X=x, bias: 2, scale: -1)\n"
            "Out=tmp_1 <- scale(X=x, scale: 0.25)\n"
            "Out=tmp_2 <- fill_constant(shape: [1], value: 1)\n"
            "Out=tmp_3 <- elementwise_div(X=tmp_2, Y=x, axis: 0)\n"
            "Out=tmp_4 <- fill_constant(shape: [1], value: 0.5)\n"
            "Out=tmp_5 <- greater_than(X=x, Y=tmp_4)\n"
            "Out=tmp_6 <- cast(X=ids, in_dtype: 3, out_dtype: 5)\n"
            "Out=tmp_7 <- elementwise_mul(X=x, Y=tmp_6, axis: 0)\n");
  EXPECT_EQ(TypeOf("tmp_3"), "float32 [-1, 3]");
  EXPECT_EQ(TypeOf("tmp_5"), "bool [-1, 3]");
  EXPECT_EQ(layers::CombineWithNumber(builder_, "elementwise_add", ids, 0.5, Side::kRight).status().message(),
            "0.5 is no whole number, and the variable is int64 [-1, 1]; layers.cast it");
}

}  // namespace
}  // namespace regatta::program
