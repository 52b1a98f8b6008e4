#include "train/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "train/pass_meter.h"
#include "train/testing/embedded_job.h"
#include "train/testing/logistic_net.h"

namespace regatta::train {
namespace {

using testing::Embedded;
using ::testing::HasSubstr;
using testing::LogisticNet;
using testing::NetsOf;
using testing::Numbers;
using testing::Watcher;

// Meters and reports every step, as a run does.
struct Metered : Watcher {
  explicit Metered(ReportStyle style) : reporter(style, ReportAuc::kYes) {}
  StepAction AfterStep(const Step& step) override {
    meter.Add(step);
    reporter.Live(meter.Interval(), {.bytes_done = meter.batches(), .bytes_total = 400});
    if (meter.batches() % 100 == 0) reporter.Interval(meter.TakeInterval());
    return Watcher::AfterStep(step);
  }
  PassMeter meter{0};
  Reporter reporter;
};

// In inference of untrained tables every prediction is ½: all figures are known.
TEST(Report, OfManyThreadsHasTheFiguresOfTheFormula) {
  for (const ReportStyle style : {ReportStyle::kLines, ReportStyle::kTerminal, ReportStyle::kJson}) {
    Embedded setup(4);
    Numbers data(400);
    Metered metered(style);
    ::testing::internal::CaptureStdout();
    const auto end = Trainer(NetsOf<LogisticNet>(), *setup.local, setup.options)
                         .RunPass(data, base::StepKind::kInfer, {}, 0, metered);
    ASSERT_TRUE(end.ok()) << end.status();
    EpochReport report = metered.meter.Epoch("epoch");
    report.all_metrics = true;
    metered.reporter.Epoch(report);
    const std::string out = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(report.metrics.samples, 1600u);
    EXPECT_NEAR(report.loss, std::log(2.0), 1e-6);
    EXPECT_NEAR(report.metrics.auc.value_or(0), 0.5, 1e-9);
    EXPECT_NEAR(report.metrics.mae, 0.5, 1e-9);
    EXPECT_NEAR(report.metrics.actual_ctr, 0.5, 1e-9);
    EXPECT_THAT(out, HasSubstr(style == ReportStyle::kJson ? "\"samples\":1600" : "samples: 1600"));
    EXPECT_THAT(out,
                HasSubstr(style == ReportStyle::kTerminal ? "epoch 0"
                          : style == ReportStyle::kJson   ? "\"batch_id\":100"
                                                          : "epoch: 0, batch_id: 100, auc: 0.500000, loss: 0.693147"));
  }
}

TEST(PassMeter, APartThatWasSerialisedGoesOnAsTheWhole) {
  Embedded setup(2);
  Numbers data(40);
  Trainer trainer(NetsOf<LogisticNet>(), *setup.local, setup.options);
  Metered first(ReportStyle::kTerminal);
  first.stop_after = 20;
  ::testing::internal::CaptureStdout();
  const auto stopped = trainer.RunPass(data, base::StepKind::kInfer, {}, 0, first);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  Metered second(ReportStyle::kTerminal);
  ASSERT_TRUE(second.meter.Restore(first.meter.Serialize()).ok());
  ASSERT_TRUE(trainer.RunPass(data, base::StepKind::kInfer, stopped->position, 0, second).ok());
  ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(second.meter.batches(), 40u);
  EXPECT_EQ(second.meter.Epoch("epoch").metrics.samples, 160u);
  EXPECT_NEAR(second.meter.Epoch("epoch").loss, std::log(2.0), 1e-6);
  EXPECT_FALSE(second.meter.Restore("short").ok());
}

}  // namespace
}  // namespace regatta::train
