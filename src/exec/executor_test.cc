#include "exec/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/append.h"
#include "program/backward.h"
#include "program/optimizers/optimizer.h"
#include "program/test_network.h"

namespace regatta::exec {
namespace {

using program::CodeOf;
using program::DataType;
using program::Must;
using program::Variable;
using testing::HasSubstr;

Value Floats(std::vector<int64_t> shape, const std::vector<float>& data) {
  return Value(at::tensor(data, torch::kFloat32).reshape(shape));
}

std::vector<float> Numbers(const Value& value) {
  const torch::Tensor& tensor = value.dense()->tensor;
  EXPECT_TRUE(tensor.is_contiguous());
  return {tensor.data_ptr<float>(), tensor.data_ptr<float>() + tensor.numel()};
}

// y = x · w + b of two inputs, with the loss mean((y − label)²).
class ExecutorTest : public program::NetworkTest {
 protected:
  void Build() {
    x_ = Data("x", {2});
    label_ = Data("label", {1});
    out_ = Must(program::layers::Fc(builder_, {x_}, {.size = 1}));
    loss_ = Must(program::layers::Mean(builder_, Must(program::layers::SquareErrorCost(builder_, out_, label_))));
  }
  void Train(const std::string& type, double rate) {
    auto optimizer = program::Optimizer::Make({.type = type, .learning_rate = rate});
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    Must(optimizer->Minimize(builder_, loss_));
  }
  void SetWeights() {
    scope_.Var("fc_0.w_0").Set(at::tensor({1.0F, 2.0F}).reshape({2, 1}));
    scope_.Var("fc_0.b_0").Set(at::tensor({0.5F}));
  }
  absl::StatusOr<std::vector<Value>> Run(const std::vector<NamedValue>& feeds,
                                         const std::vector<std::string>& fetches) {
    return RunProgram(main_, scope_, feeds, fetches);
  }
  std::string Refusal(const std::vector<NamedValue>& feeds, const std::vector<std::string>& fetches) {
    return std::string(Run(feeds, fetches).status().message());
  }
  std::vector<NamedValue> Batch() { return {{"x", Floats({2, 2}, {1, 1, 2, 0})}, {"label", Floats({2, 1}, {1, 2})}}; }
  std::vector<float> InScope(const std::string& name) { return Numbers(*scope_.Find(name)); }

  Variable *x_ = nullptr, *label_ = nullptr, *out_ = nullptr, *loss_ = nullptr;
  Scope scope_;
};

TEST_F(ExecutorTest, RunsForwardWithoutABackwardPass) {
  Build();
  SetWeights();
  const auto fetched =
      Must(Run({{"x", Floats({2, 2}, {1, 1, 2, 0})}, {"label", Floats({2, 1}, {1, 2})}}, {out_->name, loss_->name}));
  EXPECT_EQ(Numbers(fetched[0]), (std::vector<float>{3.5, 2.5}));  // 1 + 2 + 0.5, 2 + 0.5
  EXPECT_EQ(Numbers(fetched[1]), (std::vector<float>{3.25}));      // (2.5² + 0.5²) / 2
  EXPECT_FALSE(fetched[0].dense()->tensor.requires_grad());
}

TEST_F(ExecutorTest, AStepFetchesGradientsAndUpdatesParameters) {
  Build();
  Train("SGD", 0.1);
  SetWeights();
  scope_.Var("learning_rate_0").Set(at::tensor({0.1F}));
  const auto fetched = Must(Run(Batch(), {loss_->name, "fc_0.w_0@GRAD", "fc_0.b_0@GRAD", out_->name + "@GRAD"}));
  EXPECT_EQ(Numbers(fetched[0]), (std::vector<float>{3.25}));
  // dloss/dout = (out − label) · 2 / 2; dw = xᵀ · dout; db = Σ dout
  EXPECT_EQ(Numbers(fetched[3]), (std::vector<float>{2.5, 0.5}));
  EXPECT_EQ(Numbers(fetched[1]), (std::vector<float>{3.5, 2.5}));
  EXPECT_EQ(Numbers(fetched[2]), (std::vector<float>{3}));
  EXPECT_EQ(InScope("fc_0.w_0"), (std::vector<float>{1 - 0.35F, 2 - 0.25F}));
  EXPECT_EQ(InScope("fc_0.b_0"), (std::vector<float>{0.5F - 0.3F}));
  EXPECT_FALSE(scope_.Find("fc_0.w_0")->dense()->tensor.requires_grad());
}

TEST_F(ExecutorTest, FetchedParametersDoNotChangeWithTheNextStep) {
  Build();
  Train("SGD", 0.1);
  SetWeights();
  scope_.Var("learning_rate_0").Set(at::tensor({0.1F}));
  const auto before = Must(Run(Batch(), {"fc_0.w_0"}));
  const auto numbers = Numbers(before[0]);
  Must(Run(Batch(), {}));
  EXPECT_EQ(Numbers(before[0]), numbers);
  EXPECT_NE(InScope("fc_0.w_0"), numbers);
}

TEST_F(ExecutorTest, AnExecutorSeesParametersThatWereReplaced) {
  Build();
  Train("SGD", 0.1);
  SetWeights();
  scope_.Var("learning_rate_0").Set(at::tensor({0.0F}));
  Executor executor(Must(PreparedProgram::Make(main_, {"x", "label"}, {loss_->name})));
  const std::vector<Value> feeds = {Batch()[0].value, Batch()[1].value};
  EXPECT_EQ(Numbers(Must(executor.Run(scope_, feeds))[0]), (std::vector<float>{3.25}));
  scope_.Var("fc_0.b_0").Set(at::tensor({-2.0F}));
  EXPECT_EQ(Numbers(Must(executor.Run(scope_, feeds))[0]), (std::vector<float>{2}));  // (0² + (-2)²) / 2
  scope_.Erase("fc_0.b_0");
  EXPECT_THAT(std::string(executor.Run(scope_, feeds).status().message()), HasSubstr("run the startup program first"));
  Scope other;
  for (const std::string& name : scope_.Names()) other.Var(name) = *scope_.Find(name);
  other.Var("fc_0.b_0").Set(at::tensor({0.5F}));
  EXPECT_EQ(Numbers(Must(executor.Run(other, feeds))[0]), (std::vector<float>{3.25}));
}

TEST_F(ExecutorTest, StartupGivesTheSameBitsForTheSameSeed) {
  startup_.set_random_seed(7);
  Build();
  ASSERT_TRUE(RunProgram(startup_, scope_, {}, {}).ok());
  const auto first = InScope("fc_0.w_0");
  Scope second;
  ASSERT_TRUE(RunProgram(startup_, second, {}, {}).ok());
  EXPECT_EQ(Numbers(*second.Find("fc_0.w_0")), first);
  startup_.set_random_seed(8);
  ASSERT_TRUE(RunProgram(startup_, second, {}, {}).ok());
  EXPECT_NE(Numbers(*second.Find("fc_0.w_0")), first);
  EXPECT_EQ(Numbers(*second.Find("fc_0.b_0")), std::vector<float>{0});
}

TEST_F(ExecutorTest, WithoutASeedEveryExecutorDrawsItsOwn) {
  Build();
  ASSERT_TRUE(RunProgram(startup_, scope_, {}, {}).ok());
  const auto first = InScope("fc_0.w_0");
  ASSERT_TRUE(RunProgram(startup_, scope_, {}, {}).ok());
  EXPECT_NE(InScope("fc_0.w_0"), first);
}

TEST_F(ExecutorTest, RefusesFeedsThatDoNotFit) {
  Build();
  SetWeights();
  builder_.set_site({"layers.fc", "train.py", 3});
  const Value label = Floats({2, 1}, {1, 2});
  EXPECT_EQ(
      Refusal({{"x", Floats({2, 3}, {1, 2, 3, 4, 5, 6})}, {"label", label}}, {}),
      "the feed 'x', which mul reads, is float32 [2, 3] and was declared float32 [-1, 2]; reshape what is fed, or "
      "declare it otherwise");
  EXPECT_EQ(Refusal({{"x", Value(at::ones({2, 2}, torch::kFloat64))}, {"label", label}}, {}),
            "the feed 'x', which mul reads, is float64 [2, 2] and was declared float32 [-1, 2]; feed float32 "
            "(array.astype('float32')), or declare it otherwise");
  EXPECT_EQ(Refusal({{"x", Value()}, {"label", label}}, {}), "the feed 'x', which mul reads, is empty; feed a tensor");
  EXPECT_EQ(Refusal({{"label", label}}, {}), "mul: the variable 'x' was not fed; feed it");
  EXPECT_EQ(Refusal({{"x", label}, {"x", label}}, {}), "'x' is fed twice; feed it once");
  EXPECT_THAT(Refusal({{"labels", label}}, {}), HasSubstr("did you mean 'label'?"));
  Lod lod = *Lod::Make({{0, 3}}, 3);
  EXPECT_THAT(Refusal({{"x", Value(at::ones({2, 2}), lod)}, {"label", label}}, {}),
              HasSubstr("level 0 of the LoD ends at 3; it must end at 2, the number of rows"));
}

TEST_F(ExecutorTest, RefusesWhatHasNoValue) {
  Build();
  EXPECT_EQ(Refusal(Batch(), {"loss"}), "the fetch 'loss' is no variable of the program");
  EXPECT_THAT(Refusal(Batch(), {loss_->name}),
              HasSubstr("mul: the variable 'fc_0.w_0' has no value; run the startup program first"));
}

TEST_F(ExecutorTest, SaysWhereWhatLibtorchThrows) {
  Build();
  SetWeights();
  scope_.Var("fc_0.w_0").Set(at::ones({5, 1}));
  EXPECT_EQ(Refusal(Batch(), {out_->name}),
            "mul: libtorch refuses it: mat1 and mat2 shapes cannot be multiplied (2x2 and 5x1)");
}

TEST_F(ExecutorTest, TargetGradientsWeighTheTargets) {
  Variable* x = Data("x", {2});
  Variable* square = Must(program::ApplyOperator(builder_, "square", {{"X", x}}));
  Variable* weight = Data("weight", {2});
  const auto made = Must(program::AppendGradients(builder_, {square}, {x}, {weight}));
  const auto fetched = Must(Run({{"x", Floats({1, 2}, {3, 4})}, {"weight", Floats({1, 2}, {1, 10})}}, {made[0]->name}));
  EXPECT_EQ(Numbers(fetched[0]), (std::vector<float>{6, 80}));
}

TEST_F(ExecutorTest, GradientsToAVariableInTheMiddle) {
  Variable* x = Data("x", {2});
  Variable* middle = Must(program::ApplyOperator(builder_, "square", {{"X", x}}));
  middle->stop_gradient = false;
  Variable* end = Must(program::ApplyOperator(builder_, "square", {{"X", middle}}));
  const auto made = Must(program::AppendGradients(builder_, {end}, {middle}));
  EXPECT_EQ(Numbers(Must(Run({{"x", Floats({1, 2}, {1, 3})}}, {made[0]->name}))[0]), (std::vector<float>{2, 18}));
}

TEST_F(ExecutorTest, NoGradientGoesThroughWhatStopsThem) {
  Variable* x = Data("x", {1});
  Variable* stopped = Must(program::ApplyOperator(builder_, "square", {{"X", x}}));
  stopped->stop_gradient = true;
  Variable* product = Must(program::ApplyOperator(builder_, "elementwise_mul", {{"X", x}, {"Y", stopped}}));
  const auto made = Must(program::AppendGradients(builder_, {product}, {x}));
  EXPECT_EQ(Numbers(Must(Run({{"x", Floats({1, 1}, {3})}}, {made[0]->name}))[0]),
            std::vector<float>{9});  // x², not 3x²
}

TEST_F(ExecutorTest, APersistableLossKeepsNoRecord) {
  Build();
  Train("SGD", 0.1);
  SetWeights();
  scope_.Var("learning_rate_0").Set(at::tensor({0.1F}));
  loss_->persistable = true;
  Must(Run(Batch(), {loss_->name}));
  EXPECT_FALSE(scope_.Find(loss_->name)->dense()->tensor.requires_grad());
}

// An embedding of 4 rows, whose sum is the loss.
class SparseLookupTest : public ExecutorTest {
 protected:
  void BuildLookup(const std::string& optimizer, bool is_sparse) {
    Variable* ids = Data("ids", {1}, DataType::kInt64);
    Variable* rows =
        Must(program::layers::Embedding(builder_, ids, {.size = {4, 2}, .is_sparse = is_sparse, .padding_idx = 3}));
    loss_ = Must(program::layers::Mean(builder_, Must(program::ApplyOperator(builder_, "square", {{"X", rows}}))));
    startup_.set_random_seed(5);
    Train(optimizer, 0.5);
    ASSERT_TRUE(RunProgram(startup_, scope_, {}, {}).ok());
  }
  std::vector<NamedValue> Ids() { return {{"ids", Value(at::tensor({2, 0, 2, 3}, torch::kInt64).reshape({4, 1}))}}; }
};

TEST_F(SparseLookupTest, TheGradientIsRows) {
  BuildLookup("SGD", true);
  scope_.Var("embedding_0.w_0").Set(at::arange(8, torch::kFloat32).reshape({4, 2}));
  const auto fetched = Must(Run(Ids(), {"embedding_0.w_0@GRAD", loss_->name}));
  const SelectedRows* gradient = fetched[0].rows();
  ASSERT_NE(gradient, nullptr);
  EXPECT_EQ(gradient->height, 4);
  EXPECT_TRUE(at::equal(gradient->rows, at::tensor({2, 0, 2, 3}, torch::kInt64)));
  // The loss is the mean of 8 squares; the padding row 3 counts as zeros.
  const torch::Tensor expected = at::tensor({4.0F, 5.0F, 0.0F, 1.0F, 4.0F, 5.0F, 0.0F, 0.0F}).reshape({4, 2}) / 4;
  EXPECT_TRUE(at::allclose(gradient->values, expected)) << gradient->values;
  // Row 2 occurs twice: 4 − 0.5 · (1 + 1).
  EXPECT_EQ(InScope("embedding_0.w_0"), (std::vector<float>{0, 0.875, 2, 3, 3, 3.75, 6, 7}));
}

TEST_F(SparseLookupTest, RowsAndATensorTrainAlike) {
  // adam without lazy_mode decays the moments of rows that are not looked up.
  for (const char* optimizer : {"SGD", "Adagrad", "Adam", "RMSProp"}) {
    std::vector<float> weights[2];
    for (const bool is_sparse : {false, true}) {
      program::Program main, startup;
      program::NameGenerator names;
      program::ProgramBuilder builder(main, startup, names);
      startup.set_random_seed(3);
      Variable* ids = Must(program::layers::Data(builder, "ids", {.shape = {1}, .dtype = DataType::kInt64}));
      Variable* rows = Must(program::layers::Embedding(builder, ids, {.size = {4, 2}, .is_sparse = is_sparse}));
      Variable* loss =
          Must(program::layers::Mean(builder, Must(program::ApplyOperator(builder, "square", {{"X", rows}}))));
      auto made = program::Optimizer::Make({.type = optimizer, .learning_rate = 0.1});
      Must(made->Minimize(builder, loss));
      Scope scope;
      ASSERT_TRUE(RunProgram(startup, scope, {}, {}).ok());
      for (int step = 0; step < 3; ++step) {
        const int64_t other = step == 1 ? 1 : 0;
        const Value fed(at::tensor({int64_t{2}, other, int64_t{2}}, torch::kInt64).reshape({3, 1}));
        ASSERT_TRUE(RunProgram(main, scope, {{"ids", fed}}, {}).ok());
      }
      weights[is_sparse ? 1 : 0] = Numbers(*scope.Find("embedding_0.w_0"));
    }
    for (size_t i = 0; i < weights[0].size(); ++i)
      EXPECT_NEAR(weights[0][i], weights[1][i], 1e-6) << optimizer << " " << i;
  }
}

TEST_F(SparseLookupTest, RefusesAnIdThatIsNoRow) {
  BuildLookup("SGD", true);
  EXPECT_EQ(Refusal({{"ids", Value(at::tensor({int64_t{4}}, torch::kInt64).reshape({1, 1}))}}, {}),
            "lookup_table: Ids has 4 and W has 4 rows; want ids from 0 to 3: give the embedding more rows, or hash the "
            "ids");
}

}  // namespace
}  // namespace regatta::exec
