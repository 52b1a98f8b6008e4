#include "metrics/regression_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"

namespace regatta::metrics {
namespace {

struct Estimates {
  std::vector<float> predictions, labels, weights;
};

Estimates MakeEstimates(int n, uint64_t seed) {
  base::Rng rng(seed);
  Estimates e;
  for (int i = 0; i < n; ++i) {
    e.labels.push_back(static_cast<float>(200 * rng.Uniform() - 100));
    e.predictions.push_back(e.labels.back() + static_cast<float>(10 * rng.Uniform() - 3));
    e.weights.push_back(static_cast<float>(rng.Uniform()));
  }
  return e;
}

TEST(RegressionMetrics, MeansAreThoseOfTheDefinition) {
  const Estimates e = MakeEstimates(1000, 1);
  for (const bool weighted : {false, true}) {
    RegressionMetrics metrics;
    metrics.Add(e.predictions, e.labels, weighted ? std::span<const float>(e.weights) : std::span<const float>());
    double weight = 0, absolute = 0, squared = 0;
    for (size_t i = 0; i < e.labels.size(); ++i) {
      const double w = weighted ? e.weights[i] : 1, error = double{e.predictions[i]} - e.labels[i];
      weight += w;
      absolute += w * std::abs(error);
      squared += w * error * error;
    }
    const RegressionReport report = metrics.Report();
    EXPECT_EQ(report.samples, 1000u);
    EXPECT_NEAR(report.weight, weight, 1e-9);
    EXPECT_NEAR(report.mae, absolute / weight, 1e-9);
    EXPECT_NEAR(report.mse, squared / weight, 1e-9);
    EXPECT_NEAR(report.rmse, std::sqrt(squared / weight), 1e-9);
  }
}

TEST(RegressionMetrics, AWeightThatIsNoneCountsAsZero) {
  RegressionMetrics metrics;
  const std::vector<float> predictions = {1, 5, 9}, labels = {0, 0, 0}, weights = {2, -1, std::nanf("")};
  metrics.Add(predictions, labels, weights);
  EXPECT_EQ(metrics.Report().mae, 1);
  EXPECT_EQ(metrics.Report().samples, 3u);
  EXPECT_EQ(RegressionMetrics().Report().rmse, 0);
}

TEST(RegressionMetrics, PartsThatWereSerialisedMergeToTheWhole) {
  const Estimates a = MakeEstimates(300, 2), b = MakeEstimates(200, 3);
  RegressionMetrics whole, left, right;
  whole.Add(a.predictions, a.labels, a.weights);
  whole.Add(b.predictions, b.labels, b.weights);
  left.Add(a.predictions, a.labels, a.weights);
  right.Add(b.predictions, b.labels, b.weights);
  auto parsed = RegressionMetrics::Parse(left.Serialize());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->Serialize(), left.Serialize());
  parsed->Merge(*RegressionMetrics::Parse(right.Serialize()));
  EXPECT_EQ(parsed->samples(), 500u);
  EXPECT_NEAR(parsed->Report().mse, whole.Report().mse, 1e-9);
  EXPECT_NEAR(parsed->Report().mae, whole.Report().mae, 1e-9);
}

TEST(RegressionMetrics, DamagedBytesAreRefused) {
  RegressionMetrics metrics;
  metrics.Add(std::vector<float>{1}, std::vector<float>{2});
  const std::string bytes = metrics.Serialize();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(RegressionMetrics::Parse(bytes.substr(0, size)).status())) << size;
  EXPECT_TRUE(absl::IsDataLoss(RegressionMetrics::Parse(bytes + "x").status()));
  EXPECT_TRUE(absl::IsDataLoss(RegressionMetrics::Parse("y" + bytes.substr(1)).status()));
}

}  // namespace
}  // namespace regatta::metrics
