// Loops, branches and recurrent networks of steps, against the same computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/executor.h"
#include "program/layers/arithmetic.h"
#include "program/layers/control_flow.h"
#include "program/layers/dynamic_rnn.h"
#include "program/optimizers/optimizer.h"
#include "program/test_network.h"

namespace regatta::exec {
namespace {

using program::CodeOf;
using program::DataType;
using program::Must;
using program::Shape;
using program::Variable;
namespace layers = program::layers;

class ControlFlowRunTest : public program::NetworkTest {
 protected:
  Variable* Number(double value, DataType type) {
    return Must(program::ApplyOperator(builder_, "fill_constant", {},
                                       {{"shape", Shape{1}}, {"dtype", CodeOf(type)}, {"value", value}}));
  }
  Variable* Less(Variable* x, Variable* y) {
    return Must(program::ApplyOperator(builder_, "less_than", {{"X", x}, {"Y", y}}));
  }
  Variable* One(Variable* x) {
    return Must(program::ApplyOperator(builder_, "reshape", {{"X", x}}, {{"shape", Shape{1}}}));
  }
  void Into(const char* type, const program::Arguments& inputs, Variable* out) {
    Must(builder_.Append(type, inputs, {{"Out", out}}));
  }
  torch::Tensor Run(const std::vector<NamedValue>& feeds, Variable* fetch) {
    return Must(RunProgram(main_, scope_, feeds, {fetch->name}))[0].dense()->tensor;
  }

  Scope scope_;
};

TEST_F(ControlFlowRunTest, ALoopRunsUntilItsConditionIsFalseAndPassesGradients) {
  Variable *i = Number(0, DataType::kInt64), *n = One(Data("n", {1}, DataType::kInt64));
  Variable* x = Data("x", {2});
  Variable* product = Must(program::ApplyOperator(builder_, "assign", {{"X", x}}));
  Variable* condition = Less(i, n);
  const layers::Body body = layers::Body::Open(builder_);
  Into("elementwise_mul", {{"X", product}, {"Y", x}}, product);
  Into("increment", {{"X", i}}, i);
  Into("less_than", {{"X", i}, {"Y", n}}, condition);
  ASSERT_TRUE(layers::CloseWhile(builder_, body, condition).ok());
  const auto made = Must(program::AppendGradients(builder_, {product}, {x}));
  for (const int64_t times : {0, 1, 3}) {
    const std::vector<NamedValue> feeds = {{"n", Value(at::full({1, 1}, times, torch::kInt64))},
                                           {"x", Value(at::tensor({2.0F, 3.0F}).reshape({1, 2}))}};
    const torch::Tensor input = at::tensor({2.0F, 3.0F}).reshape({1, 2});
    EXPECT_TRUE(at::equal(Run(feeds, product), at::pow(input, times + 1))) << times;
    EXPECT_TRUE(at::equal(Run(feeds, made[0]), at::pow(input, times) * (times + 1))) << times;
  }
}

TEST_F(ControlFlowRunTest, OfASwitchOneCaseRuns) {
  Variable* step = Data("step", {1});
  Variable* rate = Number(0, DataType::kFloat32);
  layers::Switch choice(builder_);
  for (const double limit : {10.0, 20.0}) {
    Variable* taken = Must(choice.Case(One(Less(step, Number(limit, DataType::kFloat32)))));
    const layers::Body body = layers::Body::Open(builder_);
    Into("assign", {{"X", Number(limit, DataType::kFloat32)}}, rate);
    ASSERT_TRUE(layers::CloseBranch(builder_, body, taken).ok());
  }
  for (const auto& [now, expected] : {std::pair(5.0F, 10.0F), std::pair(15.0F, 20.0F), std::pair(25.0F, 0.0F)})
    EXPECT_EQ(Run({{"step", Value(at::full({1, 1}, now))}}, rate).item<float>(), expected) << now;
}

// hidden = tanh(word · w + hidden before · v), sequences of 2, 0 and 3 words.
TEST_F(ControlFlowRunTest, ADynamicRnnWalksEverySequence) {
  Variable* sentence = Data("sentence", {2}, DataType::kFloat32, 1);
  layers::DynamicRnn rnn(builder_);
  ASSERT_TRUE(rnn.Begin().ok());
  Variable* word = Must(rnn.StepInput(sentence));
  Variable* before = Must(rnn.Memory({.shape = {2}}));
  Variable* hidden =
      Must(layers::Fc(builder_, {word, before}, {.size = 2, .bias = {.wanted = false}, .activation = "tanh"}));
  ASSERT_TRUE(rnn.UpdateMemory(before, hidden).ok());
  ASSERT_TRUE(rnn.Output({hidden}).ok());
  Variable* out = Must(rnn.End())[0];
  Variable* loss = Must(layers::Mean(builder_, out));
  auto sgd = program::Optimizer::Make({.type = "SGD", .learning_rate = 1.0});
  Must(sgd->Minimize(builder_, loss));
  Must(RunProgram(startup_, scope_, {}, {}));
  torch::Tensor w = scope_.Find("fc_0.w_0")->dense()->tensor.clone().set_requires_grad(true);
  torch::Tensor v = scope_.Find("fc_0.w_1")->dense()->tensor.clone().set_requires_grad(true);
  const torch::Tensor words = at::arange(10, torch::kFloat32).reshape({5, 2}) / 10;
  const auto fetched = Must(
      RunProgram(main_, scope_, {{"sentence", Value(words, *Lod::Make({{0, 2, 2, 5}}, 5))}}, {out->name, loss->name}));
  std::vector<torch::Tensor> expected;
  for (const auto& [begin, end] : {std::pair(0, 2), std::pair(2, 5)}) {
    torch::Tensor state = at::zeros({1, 2});
    for (int row = begin; row < end; ++row)
      expected.push_back(state = at::tanh(at::mm(words.slice(0, row, row + 1), w) + at::mm(state, v)));
  }
  const torch::Tensor all = at::cat(expected);
  EXPECT_TRUE(at::allclose(fetched[0].dense()->tensor, all.detach(), 1e-5, 1e-6));
  EXPECT_EQ(fetched[0].dense()->lod.Text(), "[[0, 2, 2, 5]]");
  at::mean(all).backward();
  EXPECT_TRUE(at::allclose(scope_.Find("fc_0.w_0")->dense()->tensor, (w - w.grad()).detach(), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(scope_.Find("fc_0.w_1")->dense()->tensor, (v - v.grad()).detach(), 1e-5, 1e-6));
}

TEST_F(ControlFlowRunTest, AnArrayHasALengthAndIsJoined) {
  Variable* x = Data("x", {2});
  Variable* array = Must(builder_.CreateVariable("array", DataType::kFloat32));
  array->kind = program::VariableKind::kLodTensorArray;
  for (const double place : {0.0, 1.0})
    Into("write_to_array", {{"X", x}, {"I", Number(place, DataType::kInt64)}}, array);
  Variable* length = Must(program::ApplyOperator(builder_, "lod_array_length", {{"X", array}}));
  Variable* joined = Must(program::ApplyOperator(builder_, "tensor_array_to_tensor", {{"X", array}},
                                                 {{"axis", int64_t{1}}, {"use_stack", false}}));
  Variable* absent =
      Must(program::ApplyOperator(builder_, "read_from_array", {{"X", array}, {"I", Number(2, DataType::kInt64)}}));
  const torch::Tensor fed = at::tensor({1.0F, 2.0F}).reshape({1, 2});
  EXPECT_EQ(RunProgram(main_, scope_, {{"x", Value(fed)}}, {absent->name}).status().message(),
            "read_from_array: the array has 2 tensors and none at 2; write it before it is read");
  main_.global_block().RemoveOperations(main_.global_block().operations().size() - 1,
                                        main_.global_block().operations().size());
  EXPECT_EQ(Run({{"x", Value(fed)}}, length).item<int64_t>(), 2);
  EXPECT_TRUE(at::equal(Run({{"x", Value(fed)}}, joined), at::cat({fed, fed}, 1)));
}

// A static input goes with its sequence: 10 to the sequence of 1 word, 20 to that of 3.
TEST_F(ControlFlowRunTest, AStaticInputGoesWithItsSequence) {
  Variable* sentence = Data("sentence", {1}, DataType::kFloat32, 1);
  Variable* bonus = Data("bonus", {1});
  layers::DynamicRnn rnn(builder_);
  ASSERT_TRUE(rnn.Begin().ok());
  Variable* word = Must(rnn.StepInput(sentence));
  Variable* own = Must(rnn.StaticInput(bonus));
  Variable* sum = Must(program::ApplyOperator(builder_, "elementwise_add", {{"X", word}, {"Y", own}}));
  ASSERT_TRUE(rnn.Output({sum}).ok());
  Variable* out = Must(rnn.End())[0];
  const torch::Tensor words = at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).reshape({4, 1});
  const torch::Tensor fetched = Run({{"sentence", Value(words, *Lod::Make({{0, 1, 4}}, 4))},
                                     {"bonus", Value(at::tensor({10.0F, 20.0F}).reshape({2, 1}))}},
                                    out);
  EXPECT_TRUE(at::equal(fetched, at::tensor({11.0F, 22.0F, 23.0F, 24.0F}).reshape({4, 1}))) << fetched;
}

TEST_F(ControlFlowRunTest, AnErrorInABodyNamesBothOperations) {
  Variable *i = Number(0, DataType::kInt64), *one = Number(1, DataType::kInt64), *x = Data("x", {2});
  Variable* condition = Less(i, one);
  const layers::Body body = layers::Body::Open(builder_);
  Must(program::ApplyOperator(builder_, "square", {{"X", x}}));
  Into("less_than", {{"X", one}, {"Y", i}}, condition);
  ASSERT_TRUE(layers::CloseWhile(builder_, body, condition).ok());
  EXPECT_EQ(RunProgram(main_, scope_, {}, {}).status().message(),
            "while: square: the variable 'x' was not fed; feed it");
}

}  // namespace
}  // namespace regatta::exec
