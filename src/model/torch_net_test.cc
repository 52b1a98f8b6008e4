#include "model/torch_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "model/tensor.h"
#include "train/checked_net.h"

namespace regatta::model {
namespace {

using base::StepKind;
using base::TensorView;
using ::testing::HasSubstr;

// A logit that is the sum of a sample's embedding and a bias.
class SumModel : public Model {
 public:
  SumModel() {
    spec_.schema.sparse_slots = {"1", "2"};
    spec_.AddEmbedding({.table = "embedding", .dim = 1, .init = Init::Constant(0)});
    spec_.AddDense("bias", {1}, Init::Constant(0));
    spec_.AddDense("unused", {2, 3}, Init::Constant(0));
  }
  Output Forward(const Input& in) const override {
    return BinaryOutput(in.embeddings[0].sum(1) + in.dense[0], in.labels);
  }
};

// A model whose output a test makes up, from a sum that is right.
class OddModel : public SumModel {
 public:
  using Make = std::function<Output(const Input& in, const Output& right)>;
  explicit OddModel(Make make) : make_(std::move(make)) {}
  Output Forward(const Input& in) const override { return make_(in, SumModel::Forward(in)); }

 private:
  const Make make_;
};

// One step's memory: 4 samples.
struct StepMemory {
  std::vector<float> x = {0.1f, 0.2f, -0.3f, 0.4f, 0.5f, -0.6f, 0.7f, 0.8f};
  std::vector<float> bias = {0.25f}, unused = std::vector<float>(6);
  std::vector<float> labels = {1, 0, 1, 0}, weights = {1, 2, 0.5f, 1};
  std::vector<TensorView> lookups = {TensorView::Matrix(x.data(), 4, 2)};
  std::vector<TensorView> parameters = {TensorView::Vector(bias.data(), 1), TensorView::Matrix(unused.data(), 2, 3)};

  train::NetInput In(StepKind kind) const {
    return {.kind = kind,
            .lookups = lookups,
            .offsets = {},
            .parameters = parameters,
            .features = TensorView::Matrix(x.data(), 4, 0),
            .labels = TensorView::Vector(labels.data(), 4)};
  }
};

TEST(TorchNet, GradientsEqualTheFormula) {
  const SumModel model;
  const StepMemory memory;
  auto net = train::CheckedNet::Make(TorchNets(model));
  ASSERT_TRUE(net.ok()) << net.status();
  for (int step = 0; step < 3; ++step) {
    const auto out = net->Forward(memory.In(StepKind::kTrain));
    ASSERT_TRUE(out.ok()) << out.status();
    const auto grads = net->Backward(memory.In(StepKind::kTrain), TensorView::Vector(memory.weights.data(), 4));
    ASSERT_TRUE(grads.ok()) << grads.status();
    double bias_grad = 0;
    for (size_t s = 0; s < 4; ++s) {
      const double p = 1 / (1 + std::exp(-(0.25 + memory.x[2 * s] + memory.x[2 * s + 1]))), y = memory.labels[s];
      EXPECT_NEAR(out->predictions[0].floats()[s], p, 1e-6);
      EXPECT_NEAR(out->loss.floats()[s], -y * std::log(p) - (1 - y) * std::log(1 - p), 1e-6);
      const double slope = memory.weights[s] * (p - y);
      bias_grad += slope;
      for (size_t j = 0; j < 2; ++j) EXPECT_NEAR(grads->lookups[0].floats()[2 * s + j], slope, 1e-6);
    }
    EXPECT_NEAR(grads->parameters[0].floats()[0], bias_grad, 1e-6);
    EXPECT_TRUE(grads->parameters[1].empty()) << "the loss does not depend on it";
  }
}

TEST(TorchNet, InputsAreUsedWhereTheyLie) {
  const StepMemory memory;
  const OddModel model([&memory](const Input& in, const Output& right) {
    EXPECT_EQ(in.embeddings[0].data_ptr<float>(), memory.x.data());
    EXPECT_EQ(in.dense[0].data_ptr<float>(), memory.bias.data());
    EXPECT_EQ(in.labels.data_ptr<float>(), memory.labels.data());
    EXPECT_FALSE(right.loss.requires_grad()) << "inference keeps no graph";
    return right;
  });
  auto net = train::CheckedNet::Make(TorchNets(model));
  ASSERT_TRUE(net->Forward(memory.In(StepKind::kInfer)).ok());
}

TEST(TorchNet, AnOutputThatCannotBeIsAnError) {
  const std::pair<OddModel::Make, std::string> cases[] = {
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions.repeat({2}).reshape({4, 2})};
       },
       "the model odd: its prediction has the shape [4, 2]; it must have the shape [4]"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss.mean(), o.predictions};
       },
       "the shape []"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, {}};
       },
       "prediction is not set"},
      {[](const Input&, const Output& o) -> Output {
         return {{}, o.predictions};
       },
       "loss is not set"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions.to(torch::kFloat64)};
       },
       "has the type float64"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions.to(torch::kComplexFloat)};
       },
       "its prediction is a tensor of CPUComplexFloatType"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions.to_sparse()};
       },
       "its prediction is a tensor of Sparse"},
      {[](const Input& in, const Output& o) -> Output {
         return {torch::matmul(in.features, o.loss), o.loss};
       },
       "the model odd: it failed: "},
      {[](const Input&, const Output&) -> Output { throw 7; }, "it threw something that is no std::exception"},
  };
  const StepMemory memory;
  for (const auto& [make, found] : cases)
    for (const StepKind kind : {StepKind::kTrain, StepKind::kInfer}) {
      const OddModel odd(make);
      auto net = train::CheckedNet::Make(TorchNets(odd, "odd"));
      const std::string error(net->Forward(memory.In(kind)).status().message());
      EXPECT_THAT(error, HasSubstr(found));
      EXPECT_THAT(error, ::testing::Not(HasSubstr("frame #"))) << "C++ frames";
    }
}

TEST(TorchNet, ALossWithoutAGraphIsAnErrorOfBackward) {
  const OddModel odd([](const Input&, const Output& o) -> Output { return {o.loss.detach(), o.predictions}; });
  const StepMemory memory;
  auto net = train::CheckedNet::Make(TorchNets(odd));
  ASSERT_TRUE(net->Forward(memory.In(StepKind::kTrain)).ok());
  const auto grads = net->Backward(memory.In(StepKind::kTrain), TensorView::Vector(memory.weights.data(), 4));
  EXPECT_THAT(std::string(grads.status().message()), HasSubstr("OddModel: it failed: "));
  EXPECT_THAT(std::string(grads.status().message()), HasSubstr("does not require grad"));
}

// Whether a sample is clicked, and twice its sum as its price.
class TwoTasks : public SumModel {
 public:
  explicit TwoTasks(std::initializer_list<double> weights = {}) : weights_(weights) {
    spec_.schema.labels = {"click", "price"};
    spec_.outputs = {{.name = "click"}, {.name = "price", .metric = Metric::kRegression, .label = "price"}};
  }
  Output Forward(const Input& in) const override {
    const torch::Tensor sum = in.embeddings[0].sum(1);
    const Output click = BinaryOutput(sum + in.dense[0], in.label(0)), price = RegressionOutput(2 * sum, in.label(1));
    return weights_.empty() ? Joined({click, price}) : Joined({click, price}, {weights_[0], weights_[1]});
  }

 private:
  const std::vector<double> weights_;
};

TEST(TorchNet, SeveralOutputsHaveALossAndAColumnEach) {
  for (const bool weighted : {false, true}) {
    const TwoTasks model = weighted ? TwoTasks({0.5, 0.25}) : TwoTasks();
    const double click_weight = weighted ? 0.5 : 1, price_weight = weighted ? 0.25 : 1;
    const StepMemory memory;
    const std::vector<float> labels = {1, 3, 0, -2, 1, 0.5f, 0, 100};
    train::NetInput in = memory.In(StepKind::kTrain);
    in.labels = TensorView::Matrix(labels.data(), 4, 2);
    auto net = train::CheckedNet::Make(TorchNets(model));
    ASSERT_TRUE(net.ok()) << net.status();
    const auto out = net->Forward(in);
    ASSERT_TRUE(out.ok()) << out.status();
    const auto grads = net->Backward(in, TensorView::Vector(memory.weights.data(), 4));
    ASSERT_TRUE(grads.ok()) << grads.status();
    ASSERT_EQ(out->predictions.size(), 2u);
    for (size_t s = 0; s < 4; ++s) {
      const double sum = double{memory.x[2 * s]} + memory.x[2 * s + 1], p = 1 / (1 + std::exp(-(0.25 + sum)));
      const double y = labels[2 * s], error = 2 * sum - labels[2 * s + 1];
      EXPECT_NEAR(out->predictions[0].floats()[s], p, 1e-6);
      EXPECT_NEAR(out->predictions[1].floats()[s], 2 * sum, 1e-6);
      const double entropy = -y * std::log(p) - (1 - y) * std::log(1 - p);
      EXPECT_NEAR(out->loss.floats()[s], click_weight * entropy + price_weight * error * error, 1e-3);
      const double slope = memory.weights[s] * (click_weight * (p - y) + price_weight * 4 * error);
      EXPECT_NEAR(grads->lookups[0].floats()[2 * s], slope, 1e-3);
    }
  }
}

TEST(TorchNet, PredictionsNeedNoLabels) {
  const StepMemory memory;
  train::NetInput unlabelled = memory.In(StepKind::kInfer), labelled = unlabelled;
  unlabelled.labels = {};
  const std::vector<float> labels(8);
  const TwoTasks two;
  const SumModel one;
  for (const Model* const model : {static_cast<const Model*>(&two), static_cast<const Model*>(&one)}) {
    auto net = train::CheckedNet::Make(TorchNets(*model));
    if (model == &two) labelled.labels = TensorView::Matrix(labels.data(), 4, 2);
    if (model == &one) labelled.labels = TensorView::Vector(labels.data(), 4);
    std::vector<std::vector<float>> got, want;
    const auto predictions = net->Predict(unlabelled);
    ASSERT_TRUE(predictions.ok()) << predictions.status();
    for (const TensorView& view : *predictions) got.emplace_back(view.floats().begin(), view.floats().end());
    const auto out = net->Forward(labelled);
    ASSERT_TRUE(out.ok()) << out.status();
    for (const TensorView& view : out->predictions) want.emplace_back(view.floats().begin(), view.floats().end());
    EXPECT_EQ(got, want);
  }
}

TEST(TorchNet, AModelThatNeedsTheLabelsToPredictSaysSo) {
  const OddModel needy([](const Input& in, const Output& right) -> Output {
    return {(right.predictions - in.labels).square(), right.predictions};
  });
  const StepMemory memory;
  train::NetInput in = memory.In(StepKind::kInfer);
  in.labels = {};
  auto net = train::CheckedNet::Make(TorchNets(needy, "needy"));
  const std::string error(net->Predict(in).status().message());
  EXPECT_THAT(error, ::testing::StartsWith("the model needy: it failed: "));
  EXPECT_THAT(error, HasSubstr("predictions without labels: in.labels is undefined then"));
  EXPECT_THAT(error, HasSubstr("Change Forward, or give it data with labels"));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("frame #")));
}

TEST(TorchNet, PredictionsOfSeveralOutputsThatCannotBeAreAnError) {
  class Odd : public TwoTasks {
   public:
    explicit Odd(std::function<torch::Tensor(torch::Tensor)> spoil) : spoil_(std::move(spoil)) {}
    Output Forward(const Input& in) const override {
      Output out = TwoTasks::Forward(in);
      out.predictions = spoil_(out.predictions);
      return out;
    }

   private:
    const std::function<torch::Tensor(torch::Tensor)> spoil_;
  };
  const std::pair<std::function<torch::Tensor(torch::Tensor)>, std::string> cases[] = {
      {[](const torch::Tensor& p) { return p.select(1, 0); },
       "its prediction has the shape [4]; it must have the shape [samples, 2], a column for each output"},
      {[](const torch::Tensor& p) { return p.t(); }, "its prediction has the shape [2, 4]; it must have the shape"},
      {[](const torch::Tensor&) { return torch::Tensor(); }, "its prediction 'click' is not set"},
      {[](const torch::Tensor& p) { return p.to(torch::kFloat64); }, "its prediction 'click' has the type float64"},
      {[](const torch::Tensor& p) { return p.slice(0, 0, 2); }, "its prediction 'click' has the shape [2]"},
      {[](const torch::Tensor& p) { return p.to_sparse(); }, "its prediction is a tensor of Sparse"},
  };
  const StepMemory memory;
  const std::vector<float> labels(8);
  for (const auto& [spoil, found] : cases) {
    const Odd odd(spoil);
    auto net = train::CheckedNet::Make(TorchNets(odd));
    train::NetInput in = memory.In(StepKind::kInfer);
    in.labels = {};
    EXPECT_THAT(std::string(net->Predict(in).status().message()), HasSubstr(found));
    in.labels = TensorView::Matrix(labels.data(), 4, 2);
    EXPECT_THAT(std::string(net->Forward(in).status().message()), HasSubstr(found));
  }
}

// Outputs and gradients may come in any layout.
TEST(TorchNet, WhatIsNotContiguousIsCopied) {
  const OddModel odd([](const Input& in, const Output& o) -> Output {
    const torch::Tensor twice = torch::stack({o.predictions, o.predictions}, 1);
    return {(in.embeddings[0].t().contiguous().t() * torch::ones({4, 2})).sum(1) + in.dense[1].t().sum(),
            twice.select(1, 0)};
  });
  const StepMemory memory;
  auto net = train::CheckedNet::Make(TorchNets(odd));
  const auto out = net->Forward(memory.In(StepKind::kTrain));
  ASSERT_TRUE(out.ok()) << out.status();
  const auto grads = net->Backward(memory.In(StepKind::kTrain), TensorView::Vector(memory.weights.data(), 4));
  ASSERT_TRUE(grads.ok()) << grads.status();
  for (size_t s = 0; s < 4; ++s)
    for (size_t j = 0; j < 2; ++j) EXPECT_EQ(grads->lookups[0].floats()[2 * s + j], memory.weights[s]);
  for (const float g : grads->parameters[1].floats()) EXPECT_FLOAT_EQ(g, 4.5f);
}

}  // namespace
}  // namespace regatta::model
