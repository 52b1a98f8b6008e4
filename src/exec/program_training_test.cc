// Networks of public Fluid scripts, trained for some steps: they learn, and their metrics are those of what they
// predict.
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "exec/executor.h"
#include "program/clone.h"
#include "program/layers/learning_rate.h"
#include "program/layers/loss.h"
#include "program/layers/metric.h"
#include "program/layers/sequence.h"
#include "program/optimizers/optimizer.h"
#include "program/test_network.h"

namespace regatta::exec {
namespace {

using program::DataType;
using program::Must;
using program::Variable;

class TrainingTest : public program::NetworkTest {
 protected:
  Variable* Lookup(Variable* ids, int64_t rows, int64_t dim, const std::string& name) {
    return Must(
        program::layers::Embedding(builder_, ids, {.size = {rows, dim}, .is_sparse = true, .weight = {.name = name}}));
  }
  Variable* Fc(std::vector<Variable*> inputs, int64_t size, const std::string& activation) {
    return Must(program::layers::Fc(builder_, inputs, {.size = size, .activation = activation}));
  }
  Variable* Concat(const std::vector<Variable*>& parts) {
    return Must(program::ApplyOperator(builder_, "concat", {{"X", parts}}, {{"axis", int64_t{1}}}));
  }
  void Minimize(program::OptimizerOptions options, Variable* loss) {
    auto optimizer = program::Optimizer::Make(std::move(options));
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    Must(optimizer->Minimize(builder_, loss));
  }
  void Start() {
    startup_.set_random_seed(11);
    Must(RunProgram(startup_, scope_, {}, {}));
  }

  Scope scope_;
};

double NumberOf(const Value& value) { return value.dense()->tensor.reshape({-1})[0].item<double>(); }

// Sequences of ids in two slots; a click where the first id of slot 0 is even.
TEST_F(TrainingTest, ACtrNetworkLearnsAndItsAucSaysSo) {
  constexpr int64_t kIds = 50, kBatch = 64;
  std::vector<Variable*> parts;
  for (const char* slot : {"C0", "C1"}) {
    Variable* rows = Lookup(Data(slot, {1}, DataType::kInt64, 1), kIds, 8, "table");
    parts.push_back(Must(program::layers::SequencePool(builder_, rows, "sum")));
  }
  parts.push_back(Data("dense", {3}));
  Variable* prediction = Fc({Fc({Concat(parts)}, 16, "relu")}, 2, "softmax");
  Variable* label = Data("label", {1}, DataType::kInt64);
  Variable* loss =
      Must(program::layers::Mean(builder_, Must(program::layers::CrossEntropy(builder_, prediction, label))));
  const auto auc =
      Must(program::layers::AucOf(builder_, prediction, label, {.num_thresholds = 1000, .slide_steps = 4}));
  const auto test = program::CloneForTest(main_);
  Minimize({.type = "Adam", .learning_rate = 0.02, .arguments = {{"lazy_mode", true}}}, loss);
  Start();
  at::Generator random = at::detail::createCPUGenerator(3);
  const auto batch = [&] {
    const torch::Tensor ids = at::randint(0, kIds, {2 * kBatch, 1}, random, torch::kInt64);
    const torch::Tensor other = at::randint(0, kIds, {kBatch, 1}, random, torch::kInt64);
    Lod::Offsets pairs, ones;
    for (int64_t i = 0; i <= kBatch; ++i) pairs.push_back(2 * i), ones.push_back(i);
    const torch::Tensor even = 1 - at::remainder(ids.slice(0, 0, 2 * kBatch, 2), 2);
    return std::vector<Value>{Value(ids, *Lod::Make({pairs}, 2 * kBatch)), Value(other, *Lod::Make({ones}, kBatch)),
                              Value(at::ones({kBatch, 3})), Value(even)};
  };
  const std::vector<std::string> feeds = {"C0", "C1", "dense", "label"};
  Executor train(Must(PreparedProgram::Make(main_, feeds, {loss->name, auc.batch_auc->name})));
  std::vector<double> losses, areas;
  for (int step = 0; step < 150; ++step) {
    const auto fetched = Must(train.Run(scope_, batch()));
    losses.push_back(NumberOf(fetched[0]));
    areas.push_back(NumberOf(fetched[1]));
  }
  EXPECT_GT(losses.front(), 0.6);
  EXPECT_LT(losses.back(), 0.5);
  EXPECT_LT(areas.front(), 0.65);
  EXPECT_GT(areas.back(), 0.85);
  const Value before = *scope_.Find("table");
  const torch::Tensor table = before.dense()->tensor.clone();
  Executor tested(Must(PreparedProgram::Make(*test, feeds, {loss->name})));
  EXPECT_LT(NumberOf(Must(tested.Run(scope_, batch()))[0]), 0.6);
  EXPECT_TRUE(at::equal(table, scope_.Find("table")->dense()->tensor));
}

// The same run twice, dropout among its operations: the same bits. Another seed: others.
TEST_F(TrainingTest, ARunIsRepeatedBitForBit) {
  Variable* x = Data("x", {4});
  Variable* dropped = Must(program::ApplyOperator(builder_, "dropout", {{"X", Fc({x}, 8, "tanh")}}));
  Variable* loss = Must(program::layers::Mean(builder_, Fc({dropped}, 1, "")));
  Minimize({.type = "Momentum", .learning_rate = 0.1, .arguments = {{"momentum", 0.9}}}, loss);
  const auto losses = [&](int64_t seed) {
    main_.set_random_seed(seed);
    startup_.set_random_seed(seed);
    Scope scope;
    Must(RunProgram(startup_, scope, {}, {}));
    Executor step(Must(PreparedProgram::Make(main_, {"x"}, {loss->name})));
    std::vector<double> all;
    for (int i = 0; i < 5; ++i) all.push_back(NumberOf(Must(step.Run(scope, std::vector{Value(at::ones({6, 4}))}))[0]));
    return all;
  };
  const auto first = losses(4);
  EXPECT_EQ(losses(4), first);
  EXPECT_NE(losses(5), first);
}

// The rate of a schedule and the clip of a group of gradients reach the parameters.
TEST_F(TrainingTest, ScheduleAndGlobalNormClipGoIntoTheUpdate) {
  Variable* x = Data("x", {2});
  Variable* out = Must(program::layers::Fc(builder_, {x}, {.size = 1, .bias = {.wanted = false}}));
  Variable* loss = Must(program::layers::Mean(builder_, out));
  Variable* rate = Must(program::layers::ExponentialDecay(
      builder_, {.learning_rate = 1, .decay_steps = 1, .decay_rate = 0.5, .staircase = false}));
  program::GradientClip clip;
  clip.kind = program::GradientClip::Kind::kGlobalNorm;
  clip.limit = 1;
  Minimize({.type = "SGD", .learning_rate = rate, .gradient_clip = clip}, loss);
  Start();
  scope_.Var("fc_0.w_0").Set(at::zeros({2, 1}));
  Executor step(Must(PreparedProgram::Make(main_, {"x"}, {rate->name})));
  const std::vector<Value> feeds = {Value(at::tensor({3.0F, 4.0F}).reshape({1, 2}))};  // the gradient: norm 5 → 1
  double moved = 0;
  for (int i = 0; i < 3; ++i) {
    const double now = NumberOf(Must(step.Run(scope_, feeds))[0]);
    EXPECT_DOUBLE_EQ(now, std::pow(0.5, i));
    moved += now;
  }
  const torch::Tensor expected = at::tensor({-0.6F, -0.8F}).reshape({2, 1}) * moved;
  EXPECT_TRUE(at::allclose(scope_.Find("fc_0.w_0")->dense()->tensor, expected, 1e-6, 1e-6));
}

}  // namespace
}  // namespace regatta::exec
