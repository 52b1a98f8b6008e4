#include "train/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

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
  PassMeter meter{0, LogisticNet().spec()};
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
    EXPECT_EQ(report.samples, 1600u);
    EXPECT_NEAR(report.loss, std::log(2.0), 1e-6);
    EXPECT_NEAR(report.auc().value_or(0), 0.5, 1e-9);
    EXPECT_NEAR(report.outputs[0].binary()->mae, 0.5, 1e-9);
    EXPECT_NEAR(report.outputs[0].binary()->actual_ctr, 0.5, 1e-9);
    EXPECT_THAT(out, HasSubstr(style == ReportStyle::kJson ? "\"samples\":1600" : "samples: 1600"));
    EXPECT_THAT(out,
                HasSubstr(style == ReportStyle::kTerminal ? "epoch 0"
                          : style == ReportStyle::kJson   ? "\"batch_id\":100"
                                                          : "epoch: 0, batch_id: 100, auc: 0.500000, loss: 0.693147"));
  }
}

// What a reporter prints of these outputs.
struct Printed {
  std::string interval, epoch;
};
Printed PrintedOf(const std::vector<OutputReport>& outputs, ReportStyle style, ReportAuc auc = ReportAuc::kYes) {
  Reporter reporter(style, auc);
  IntervalReport interval{.epoch = 1,
                          .batches = 100,
                          .outputs = outputs,
                          .loss = 0.25,
                          .reader_seconds = 0,
                          .batch_seconds = 0.5,
                          .samples = 8,
                          .samples_per_second = 16,
                          .cluster = {}};
  EpochReport epoch{.what = "epoch",
                    .epoch = 1,
                    .seconds = 2,
                    .loss = 0.25,
                    .samples_per_second = 16,
                    .samples = 32,
                    .outputs = outputs,
                    .bad_lines = 0,
                    .all_metrics = true};
  Printed printed;
  ::testing::internal::CaptureStdout();
  reporter.Interval(interval);
  printed.interval = ::testing::internal::GetCapturedStdout();
  ::testing::internal::CaptureStdout();
  reporter.Epoch(epoch);
  printed.epoch = ::testing::internal::GetCapturedStdout();
  return printed;
}

metrics::BinaryReport MadeBinary() {
  metrics::BinaryReport m;
  m.samples = 32;
  m.auc = 0.75;
  m.logloss = 0.25, m.mae = 0.125, m.rmse = 0.5, m.actual_ctr = 0.5, m.predicted_ctr = 0.25, m.copc = 2;
  return m;
}
const metrics::RegressionReport kMadeRegression{.samples = 32, .weight = 32, .mse = 2.25, .mae = 1, .rmse = 1.5};

// Scripts read these lines: of one binary output they are as they always were.
TEST(Report, OfOneBinaryOutputKeepsItsLines) {
  const std::vector<OutputReport> one = {{"click", MadeBinary()}};
  const Printed lines = PrintedOf(one, ReportStyle::kLines);
  EXPECT_EQ(lines.interval,
            "epoch: 1, batch_id: 100, auc: 0.750000, loss: 0.250000, avg_reader_cost: 0.00000 sec, avg_batch_cost: "
            "0.50000 sec, avg_samples: 8.0, ips: 16.0 ins/s\n");
  EXPECT_EQ(lines.epoch,
            "epoch: 1 done, auc: 0.750000, loss: 0.250000, logloss: 0.250000, mae: 0.125000, rmse: 0.500000, "
            "actual_ctr: 0.500000, predicted_ctr: 0.250000, copc: 2.000000, bucket_error: 0.000000, epoch time: 2.00 "
            "s, samples: 32, ips: 16.0 ins/s\n");
  EXPECT_THAT(PrintedOf(one, ReportStyle::kLines, ReportAuc::kNo).interval, HasSubstr("batch_id: 100, loss: 0.250000"));
  const Printed json = PrintedOf(one, ReportStyle::kJson);
  EXPECT_EQ(json.interval,
            R"({"auc":0.75,"avg_batch_cost":0.5,"avg_reader_cost":0.0,"avg_samples":8.0,"batch_id":100,"epoch":1,)"
            R"("ips":16.0,"loss":0.25,"report":"interval"})"
            "\n");
  EXPECT_EQ(json.epoch,
            R"({"actual_ctr":0.5,"auc":0.75,"bad_lines":0,"bucket_error":0.0,"copc":2.0,"epoch":1,"ips":16.0,)"
            R"("logloss":0.25,"loss":0.25,"mae":0.125,"predicted_ctr":0.25,"report":"epoch","rmse":0.5,"samples":32,)"
            R"("seconds":2.0})"
            "\n");
}

TEST(Report, OfARegressionHasItsErrorsInPlaceOfTheAuc) {
  const std::vector<OutputReport> one = {{"price", kMadeRegression}};
  for (const ReportAuc auc : {ReportAuc::kYes, ReportAuc::kNo}) {
    const Printed lines = PrintedOf(one, ReportStyle::kLines, auc);
    EXPECT_THAT(lines.interval, HasSubstr("100, mse: 2.250000, mae: 1.000000, rmse: 1.500000, loss: 0.250000, avg_"));
    EXPECT_THAT(lines.epoch, HasSubstr("done, mse: 2.250000, mae: 1.000000, rmse: 1.500000, loss: 0.250000, epoch t"));
  }
  const Printed json = PrintedOf(one, ReportStyle::kJson);
  EXPECT_THAT(json.interval, HasSubstr(R"("mae":1.0,"mse":2.25,"report":"interval","rmse":1.5)"));
  EXPECT_THAT(json.epoch, HasSubstr(R"("mae":1.0,"mse":2.25,"report":"epoch","rmse":1.5,"samples":32)"));
}

TEST(Report, OfSeveralOutputsNamesThem) {
  const std::vector<OutputReport> two = {{"click", MadeBinary()}, {"price", kMadeRegression}};
  const Printed lines = PrintedOf(two, ReportStyle::kLines);
  const std::string figures =
      "click_auc: 0.750000, price_mse: 2.250000, price_mae: 1.000000, price_rmse: 1.500000, loss: 0.250000, ";
  EXPECT_THAT(lines.interval, HasSubstr("batch_id: 100, " + figures + "avg_reader_cost"));
  EXPECT_THAT(lines.epoch, HasSubstr("done, " + figures + "click_logloss: 0.250000, click_mae: 0.125000, "));
  const Printed json = PrintedOf(two, ReportStyle::kJson);
  EXPECT_THAT(json.interval,
              HasSubstr(R"("outputs":{"click":{"auc":0.75},"price":{"mae":1.0,"mse":2.25,"rmse":1.5}})"));
  EXPECT_THAT(json.epoch, HasSubstr(R"("price":{"mae":1.0,"mse":2.25,"rmse":1.5,"samples":32}})"));
  EXPECT_THAT(json.epoch, HasSubstr(R"("report":"epoch","samples":32)"));
}

TEST(Report, WithoutLabelsHasNoLossAndNoMetrics) {
  const Printed lines = PrintedOf({}, ReportStyle::kLines);
  EXPECT_THAT(lines.interval, HasSubstr("batch_id: 100, avg_reader_cost"));
  EXPECT_EQ(lines.epoch, "epoch: 1 done, epoch time: 2.00 s, samples: 32, ips: 16.0 ins/s\n");
  const Printed json = PrintedOf({}, ReportStyle::kJson);
  for (const std::string& report : {json.interval, json.epoch})
    for (const char* name : {"loss", "auc", "outputs"}) EXPECT_THAT(report, ::testing::Not(HasSubstr(name)));
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
  EXPECT_EQ(second.meter.Epoch("epoch").samples, 160u);
  EXPECT_NEAR(second.meter.Epoch("epoch").loss, std::log(2.0), 1e-6);
  EXPECT_FALSE(second.meter.Restore("short").ok());
}

}  // namespace
}  // namespace regatta::train
