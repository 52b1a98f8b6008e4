#include "train/step_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "train/testing/embedded_job.h"
#include "train/testing/logistic_net.h"
#include "train/testing/two_task_net.h"

namespace regatta::train {
namespace {

using testing::Embedded;
using testing::LogisticNet;
using testing::NetsOf;
using testing::SpoiltNet;
using testing::TwoTaskNet;

// A batch of 3 samples and 2 slots; sample 1 has two ids in its first slot, sample 2 none in its second.
PlannedBatch MakeBatch(std::vector<float> weights) {
  PlannedBatch planned;
  planned.batch = std::make_unique<data::Batch>();
  data::Batch& b = *planned.batch;
  b.size = 3, b.slots = 2;
  b.keys = {5, 1005, 5, 6, 1005, 7};
  b.offsets = {0, 1, 2, 4, 5, 6, 6};
  b.labels = {1, 0, 1};
  b.weights = std::move(weights);
  lookup::Planner().Plan({b.keys, b.offsets, b.values}, planned.plans.emplace_back());
  return planned;
}

// The same by the definition: w ← w − rate · (mean gradient), in doubles.
struct Reference {
  std::map<base::Key, double> rows;
  double bias = 0;

  // Returns the loss, weighted and summed.
  double Step(const data::Batch& b, double rate, double l2, double clip) {
    std::map<base::Key, double> grads;
    double bias_grad = 0, loss = 0;
    for (int s = 0; s < b.size; ++s) {
      const double weight = b.weights.empty() ? 1 : b.weights[static_cast<size_t>(s)],
                   y = b.labels[static_cast<size_t>(s)];
      const uint32_t begin = b.offsets[static_cast<size_t>(s) * 2], end = b.offsets[static_cast<size_t>(s) * 2 + 2];
      double logit = bias;
      for (uint32_t p = begin; p < end; ++p) logit += rows[b.keys[p]];
      const double prediction = 1 / (1 + std::exp(-logit));
      loss -= weight * (y * std::log(prediction) + (1 - y) * std::log(1 - prediction));
      for (uint32_t p = begin; p < end; ++p) grads[b.keys[p]] += weight * (prediction - y) / b.size;
      bias_grad += weight * (prediction - y) / b.size;
    }
    for (auto& [key, grad] : grads) rows[key] -= rate * (grad + l2 * rows[key]);
    if (clip > 0 && std::abs(bias_grad) > clip) bias_grad *= clip / std::abs(bias_grad);
    bias -= rate * bias_grad;
    return loss;
  }
};

struct Case {
  std::vector<float> weights;
  double l2 = 0;
  double clip = 0;
};

TEST(StepRunner, StepsEqualTheFormula) {
  class Regularised : public LogisticNet {
   public:
    explicit Regularised(double l2) { spec_.lookups[0].l2 = l2; }
  };
  for (const Case& c : {Case{}, Case{{1, 0.5, 2}}, Case{{}, 0.3}, Case{{}, 0, 0.01}, Case{{1, 0.5, 2}, 0.1, 0.05}}) {
    Embedded setup(1);
    StepRunner runner(*CheckedNet::Make(NetsOf<Regularised>(c.l2)), *setup.local, {.clip_by_norm = c.clip});
    Reference reference;
    const PlannedBatch planned = MakeBatch(c.weights);
    for (uint64_t step = 0; step < 5; ++step) {
      const double loss = reference.Step(*planned.batch, Embedded::kLearningRate, c.l2, c.clip);
      const auto result = runner.Train(planned, step);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_NEAR(result->loss_sum, loss, 1e-5);
      EXPECT_DOUBLE_EQ(result->weight_sum, c.weights.empty() ? 3 : 3.5);
    }
    for (const auto& [key, value] : reference.rows) EXPECT_NEAR(setup.RowOf(key), value, 1e-5) << key;
    EXPECT_NEAR(setup.client->LiveDense()[0], reference.bias, 1e-5);
    EXPECT_GT(std::abs(reference.bias), 1e-4);
  }
}

// The two tasks by their definition, in doubles: w ← w − rate · (mean gradient).
struct TwoTaskReference {
  std::map<base::Key, double> rows;
  double bias[2] = {0, 0};
  std::vector<double> click, price;  // of the last step's samples, before it

  double Step(const data::Batch& b, double rate) {
    std::map<base::Key, double> grads;
    double bias_grads[2] = {0, 0}, loss = 0;
    click.clear(), price.clear();
    for (size_t s = 0; s < static_cast<size_t>(b.size); ++s) {
      const double weight = b.weights.empty() ? 1 : b.weights[s], y = b.labels[2 * s], cost = b.labels[2 * s + 1];
      double sum = 0;
      for (uint32_t p = b.offsets[2 * s]; p < b.offsets[2 * s + 2]; ++p) sum += rows[b.keys[p]];
      click.push_back(1 / (1 + std::exp(-sum - bias[0])));
      price.push_back(2 * sum + bias[1]);
      const double slope = click.back() - y, error = price.back() - cost;
      loss += weight * (-y * std::log(click.back()) - (1 - y) * std::log(1 - click.back()) + error * error / 2);
      for (uint32_t p = b.offsets[2 * s]; p < b.offsets[2 * s + 2]; ++p)
        grads[b.keys[p]] += weight * (slope + 2 * error) / b.size;
      bias_grads[0] += weight * slope / b.size;
      bias_grads[1] += weight * error / b.size;
    }
    for (const auto& [key, grad] : grads) rows[key] -= rate * grad;
    for (int i = 0; i < 2; ++i) bias[i] -= rate * bias_grads[i];
    return loss;
  }
};

struct TwoTaskJob : Embedded {
  TwoTaskJob() : Embedded(1, table::NanPolicy::kAbort, /*biases=*/2) {}
};

PlannedBatch MakeTwoTaskBatch(std::vector<float> weights) {
  PlannedBatch planned = MakeBatch(std::move(weights));
  planned.batch->label_dim = 2;
  planned.batch->labels = {1, -0.5f, 0, 1.25f, 1, 0.75f};
  return planned;
}

TEST(StepRunner, StepsOfTwoLabelsEqualTheFormula) {
  for (const std::vector<float>& weights : {std::vector<float>{}, std::vector<float>{0.5f, 0.25f, 1}}) {
    TwoTaskJob setup;
    StepRunner runner(*CheckedNet::Make(NetsOf<TwoTaskNet>()), *setup.local, {});
    TwoTaskReference reference;
    const PlannedBatch planned = MakeTwoTaskBatch(weights);
    for (uint64_t step = 0; step < 4; ++step) {
      const double loss = reference.Step(*planned.batch, Embedded::kLearningRate);
      const auto result = runner.Train(planned, step);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_NEAR(result->loss_sum, loss, 1e-4);
      ASSERT_EQ(result->predictions.size(), 2u);
      for (size_t s = 0; s < 3; ++s) {
        EXPECT_NEAR(result->predictions[0].floats()[s], reference.click[s], 1e-5);
        EXPECT_NEAR(result->predictions[1].floats()[s], reference.price[s], 1e-4);
      }
    }
    for (const auto& [key, value] : reference.rows) EXPECT_NEAR(setup.RowOf(key), value, 1e-4) << key;
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(setup.client->LiveDense()[i], reference.bias[i], 1e-4);
    EXPECT_GT(std::abs(reference.bias[0] - reference.bias[1]), 1e-3);
  }
}

// Predictions without labels are those that the same samples get with them.
TEST(StepRunner, WithoutLabelsThereArePredictionsAlone) {
  TwoTaskJob setup;
  StepRunner runner(*CheckedNet::Make(NetsOf<TwoTaskNet>()), *setup.local, {});
  const PlannedBatch labelled = MakeTwoTaskBatch({});
  ASSERT_TRUE(runner.Train(labelled, 0).ok());
  PlannedBatch unlabelled = MakeTwoTaskBatch({});
  unlabelled.batch->labels.clear();
  unlabelled.batch->label_dim = 0;
  std::vector<float> want;
  const auto infer = runner.Infer(labelled, 1);
  ASSERT_TRUE(infer.ok()) << infer.status();
  for (const base::TensorView& output : infer->predictions)
    want.insert(want.end(), output.floats().begin(), output.floats().end());
  const auto result = runner.Infer(unlabelled, 1);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<float> got;
  for (const base::TensorView& output : result->predictions)
    got.insert(got.end(), output.floats().begin(), output.floats().end());
  EXPECT_EQ(got, want);
  EXPECT_EQ(result->loss_sum, 0);
  EXPECT_EQ(result->weight_sum, 0);
  EXPECT_FALSE(runner.Train(unlabelled, 2).ok()) << "there is nothing to learn from";
}

// A table may take other gradients than it gives rows: the stages look before they read or write any.
TEST(StepRunner, WidthsThatAreNotTheNetsAreAnErrorThatNamesBoth) {
  Embedded setup(1);
  testing::Counting counting(*setup.local);
  const auto error = [&](const std::vector<comm::RowWidths>& widths, base::StepKind kind) {
    counting.wrong_widths = widths;
    StepRunner runner(*CheckedNet::Make(NetsOf<LogisticNet>()), counting, {});
    const PlannedBatch planned = MakeBatch({});
    const auto result = kind == base::StepKind::kTrain ? runner.Train(planned, 0) : runner.Infer(planned, 0);
    return std::string(result.status().message());
  };
  EXPECT_EQ(error({{3, 1}}, base::StepKind::kInfer), "table embedding gives rows of 3 floats, and the model reads 1");
  EXPECT_EQ(error({{1, 4}}, base::StepKind::kTrain),
            "table embedding takes gradients of 4 floats, and the model makes them of 1");
  EXPECT_EQ(error({{1, 4}}, base::StepKind::kInfer), "") << "inference pushes nothing";
  EXPECT_EQ(setup.sparse->rows(), 0u);
}

TEST(StepRunner, AnInputThatTheLossDoesNotDependOnStaysAsItIs) {
  Embedded setup(1);
  StepRunner runner(*CheckedNet::Make(NetsOf<SpoiltNet>(nullptr,
                                                        [](auto& lookups, auto& parameters) {
                                                          lookups[0] = parameters[0] = {};
                                                          return absl::OkStatus();
                                                        })),
                    *setup.local, {});
  const PlannedBatch planned = MakeBatch({});
  ASSERT_TRUE(runner.Train(planned, 0).ok());
  EXPECT_EQ(setup.RowOf(5), 0.0f);
  EXPECT_EQ(setup.client->LiveDense()[0], 0.0f);
}

}  // namespace
}  // namespace regatta::train
