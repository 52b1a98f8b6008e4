#include "worker/job_progress.h"

#include <gtest/gtest.h>

namespace regatta::worker {
namespace {

client::WorkerProgress Training(uint64_t samples, double speed, double loss_sum, double weight_sum) {
  client::WorkerProgress progress;
  progress.set_training(true);
  progress.set_samples(samples);
  progress.set_samples_per_second(speed);
  progress.set_loss_sum(loss_sum);
  progress.set_weight_sum(weight_sum);
  return progress;
}

TEST(MergeProgress, AddsSpeedsAndWeighsLosses) {
  const train::ClusterReport report =
      MergeProgress({{0, Training(100, 300, 30, 100)}, {1, Training(50, 100, 40, 50)}, {2, Training(1, 200, 0, 0)}})
          .value();
  EXPECT_EQ(report.workers, 3);
  EXPECT_EQ(report.samples, 151u);
  EXPECT_DOUBLE_EQ(report.samples_per_second, 600);
  EXPECT_DOUBLE_EQ(report.loss, 70.0 / 150);
  ASSERT_TRUE(report.slowest.has_value());
  EXPECT_EQ(report.slowest->worker, 1);
  EXPECT_DOUBLE_EQ(report.slowest->share, 0.5);
  EXPECT_FALSE(report.staleness.has_value());
}

TEST(MergeProgress, AWorkerThatWaitsHasNoSpeed) {
  client::WorkerProgress waits = Training(70, 5, 9, 9);
  waits.set_training(false);
  const train::ClusterReport report = MergeProgress({{0, Training(100, 300, 30, 100)}, {1, waits}}).value();
  EXPECT_EQ(report.workers, 2);
  EXPECT_EQ(report.samples, 170u);
  EXPECT_DOUBLE_EQ(report.samples_per_second, 300);
  EXPECT_DOUBLE_EQ(report.loss, 0.3);
  EXPECT_FALSE(report.slowest.has_value());
}

TEST(MergeProgress, StalenessIsAPush) {
  client::WorkerProgress a = Training(1, 1, 1, 1), b = a;
  a.set_pushes(10);
  a.set_staleness_sum(30);
  b.set_pushes(30);
  b.set_staleness_sum(10);
  EXPECT_DOUBLE_EQ(MergeProgress({{0, a}, {1, b}})->staleness.value(), 1);
}

TEST(MergeProgress, NothingKnownIsNothing) {
  EXPECT_FALSE(MergeProgress({{0, {}}, {1, {}}}).has_value());
  EXPECT_FALSE(MergeProgress({{0, Training(0, 0, 0, 0)}, {1, {}}}).has_value());
}

}  // namespace
}  // namespace regatta::worker
