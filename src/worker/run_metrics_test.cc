#include "worker/run_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace regatta::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using train::Metric;

train::NetSpec SpecOf(std::vector<train::OutputSpec> outputs) {
  train::NetSpec spec;
  spec.schema.labels = {"click", "price"};
  spec.outputs = std::move(outputs);
  return spec;
}

std::string CollectedFrom(const RunMetrics& metrics) {
  metrics::Exposition out;
  metrics.Collect(out);
  return out.Text();
}

TEST(RunMetrics, OneBinaryOutputHasAnAucWithoutALabel) {
  RunMetrics metrics(SpecOf({{}}));
  EXPECT_THAT(CollectedFrom(metrics), AllOf(HasSubstr("\nregatta_worker_auc NaN\n"), Not(HasSubstr("rmse"))));
  metrics::BinaryReport binary;
  binary.auc = 0.75;
  train::IntervalReport report;
  report.outputs = {{"prediction", binary}};
  metrics.Report(report);
  EXPECT_THAT(CollectedFrom(metrics), HasSubstr("\nregatta_worker_auc 0.75\n"));
}

TEST(RunMetrics, OfSeveralOutputsEachHasItsName) {
  RunMetrics metrics(SpecOf({{.name = "click"}, {.name = "price", .metric = Metric::kRegression, .label = "price"}}));
  EXPECT_THAT(CollectedFrom(metrics), AllOf(HasSubstr("\nregatta_worker_auc{output=\"click\"} NaN\n"),
                                            HasSubstr("\nregatta_worker_rmse{output=\"price\"} NaN\n")));
  train::IntervalReport report;
  report.outputs = {{"click", metrics::BinaryReport()},
                    {"price", metrics::RegressionReport{.samples = 2, .weight = 2, .mse = 4, .mae = 1.5, .rmse = 2}}};
  metrics.Report(report);
  EXPECT_THAT(CollectedFrom(metrics), AllOf(HasSubstr("\nregatta_worker_mae{output=\"price\"} 1.5\n"),
                                            HasSubstr("\nregatta_worker_rmse{output=\"price\"} 2\n")));
}

}  // namespace
}  // namespace regatta::worker
