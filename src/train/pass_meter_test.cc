#include "train/pass_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "train/testing/logistic_net.h"
#include "train/testing/two_task_net.h"

namespace regatta::train {
namespace {

using ::testing::HasSubstr;
using testing::LogisticNet;
using testing::TwoTaskNet;

// A step of a batch of three samples with fixed figures.
struct MadeStep {
  explicit MadeStep(int label_dim) {
    batch.size = 3;
    batch.label_dim = label_dim;
    for (size_t s = 0; s < 3; ++s)
      for (size_t i = 0; i < static_cast<size_t>(label_dim); ++i)
        batch.labels.push_back(i == 0 ? clicks[s] : prices[s]);
    result.batch = &batch;
    result.predictions = {views, label_dim == 1 ? size_t{1} : size_t{2}};
    result.loss_sum = label_dim == 0 ? 0 : 1.5;
    result.weight_sum = label_dim == 0 ? 0 : 3;
  }
  PassObserver::Step step() const {
    return {.result = result, .position = position, .read_seconds = 0, .step_seconds = 0};
  }

  const float clicks[3] = {1, 0, 1}, prices[3] = {-4, 2.5f, 10};
  const float probabilities[3] = {0.75f, 0.25f, 0.125f}, estimates[3] = {-3, 2.5f, 7};
  const base::TensorView views[2] = {base::TensorView::Vector(probabilities, 3),
                                     base::TensorView::Vector(estimates, 3)};
  data::Batch batch;
  StepResult result;
  base::DataPosition position;
};

NetSpec RegressionSpec() {
  NetSpec spec = LogisticNet().spec();
  spec.outputs = {{.name = "price", .metric = Metric::kRegression}};
  return spec;
}

TEST(PassMeter, EveryOutputIsMeasuredAgainstItsLabel) {
  PassMeter meter(4, TwoTaskNet().spec());
  meter.Add(MadeStep(2).step());
  const EpochReport report = meter.Epoch("epoch");
  EXPECT_EQ(report.samples, 3u);
  EXPECT_DOUBLE_EQ(report.loss, 0.5);
  ASSERT_EQ(report.outputs.size(), 2u);
  EXPECT_EQ(report.outputs[0].name, "click");
  ASSERT_NE(report.outputs[0].binary(), nullptr);
  EXPECT_DOUBLE_EQ(report.outputs[0].binary()->auc.value_or(0), 0.5);
  EXPECT_DOUBLE_EQ(report.auc().value_or(0), 0.5);
  EXPECT_DOUBLE_EQ(report.outputs[0].binary()->actual_ctr, 2.0 / 3);
  EXPECT_EQ(report.outputs[1].name, "price");
  ASSERT_NE(report.outputs[1].regression(), nullptr);
  EXPECT_DOUBLE_EQ(report.outputs[1].regression()->mae, (1.0 + 0 + 3) / 3);
  EXPECT_DOUBLE_EQ(report.outputs[1].regression()->mse, (1.0 + 0 + 9) / 3);
}

TEST(PassMeter, OfARegressionThereIsNoAuc) {
  PassMeter meter(0, RegressionSpec());
  MadeStep made(1);
  meter.Add(made.step());
  EXPECT_FALSE(meter.Epoch("epoch").auc().has_value());
  EXPECT_EQ(meter.Epoch("epoch").outputs.at(0).regression()->samples, 3u);
}

TEST(PassMeter, WithoutLabelsOnlySamplesAreCounted) {
  PassMeter meter(0, TwoTaskNet().spec());
  meter.Add(MadeStep(0).step());
  EXPECT_EQ(meter.Epoch("epoch").samples, 3u);
  EXPECT_TRUE(meter.Epoch("epoch").outputs.empty());
  EXPECT_TRUE(meter.Interval().outputs.empty());
  EXPECT_EQ(meter.Interval().samples, 3);
}

// What builds wrote that knew one binary output only: a checkpoint of theirs resumes, and theirs resume ours.
constexpr char kGolden[] =
    "02000000000000000000000000000840000000000000184052424d3206000000000000000000000000000000000000000000"
    "1c40000000000000084000000000000005400000000000000340000000000040f23f205023ccbb710ec0038080250002ff7f"
    "0800ffff010004060000000000000007000000000000000000403f0000803f07000000000000000000803e000000c0080000"
    "00000000000000003e0000003f07000000000000000000403f0000803f07000000000000000000803e000000c00800000000"
    "0000000000003e0000003f";

TEST(PassMeter, TheBytesOfOneBinaryOutputAreThoseOfOlderBuilds) {
  PassMeter meter(0, LogisticNet().spec());
  MadeStep made(1);
  made.batch.weights = {1, 2, 0.5f};
  made.batch.users = {7, 7, 8};
  meter.Add(made.step());
  meter.Add(made.step());
  EXPECT_EQ(absl::BytesToHexString(meter.Serialize()), kGolden);
  PassMeter restored(0, LogisticNet().spec());
  ASSERT_EQ(restored.Restore(absl::HexStringToBytes(kGolden)), absl::OkStatus());
  EXPECT_EQ(restored.batches(), 2u);
  EXPECT_EQ(restored.Epoch("epoch").samples, 6u);
  EXPECT_EQ(restored.Epoch("epoch").auc(), meter.Epoch("epoch").auc());
}

TEST(PassMeter, PartsOfSeveralOutputsMergeToTheWhole) {
  for (const NetSpec& spec : {TwoTaskNet().spec(), RegressionSpec()}) {
    const MadeStep made(spec.schema.labels.size() == 2 ? 2 : 1);
    PassMeter whole(0, spec), part(0, spec), other = PassMeter::Empty(whole);
    whole.Add(made.step()), whole.Add(made.step()), whole.Add(made.step());
    part.Add(made.step());
    other.Add(made.step()), other.Add(made.step());
    PassMeter restored(0, spec);
    ASSERT_EQ(restored.Restore(part.Serialize()), absl::OkStatus());
    EXPECT_EQ(restored.Serialize(), part.Serialize());
    ASSERT_EQ(restored.Merge(other.Serialize()), absl::OkStatus());
    EXPECT_EQ(restored.Serialize(), whole.Serialize());
  }
}

TEST(PassMeter, DamagedBytesAreDataLossAndChangeNothing) {
  const NetSpec one = LogisticNet().spec(), two = TwoTaskNet().spec(), regression = RegressionSpec();
  for (const NetSpec* const spec : {&one, &two, &regression}) {
    PassMeter meter(0, *spec);
    meter.Add(MadeStep(static_cast<int>(spec->schema.labels.size())).step());
    const std::string bytes = meter.Serialize();
    PassMeter untouched = PassMeter::Empty(meter);
    const std::string nothing = untouched.Serialize();
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_TRUE(absl::IsDataLoss(untouched.Restore(bytes.substr(0, size)))) << size;
      EXPECT_TRUE(absl::IsDataLoss(untouched.Merge(bytes.substr(0, size)))) << size;
    }
    EXPECT_TRUE(absl::IsDataLoss(untouched.Restore(bytes + '\0')));
    // The lengths of pieces, which must not be believed.
    for (size_t at = 24; at + 8 <= bytes.size() && at < 200; ++at) {
      std::string huge = bytes;
      huge.replace(at, 8, 8, '\xff');
      if (PassMeter::Empty(meter).Restore(huge).ok()) continue;  // figures may be anything
      EXPECT_FALSE(untouched.Restore(huge).ok());
    }
    EXPECT_EQ(untouched.Serialize(), nothing);
  }
}

TEST(PassMeter, BytesOfOtherOutputsAreRefused) {
  NetSpec renamed = TwoTaskNet().spec();
  renamed.outputs[1].name = "cost";
  NetSpec swapped = TwoTaskNet().spec();
  std::swap(swapped.outputs[0].metric, swapped.outputs[1].metric);
  const NetSpec one = LogisticNet().spec(), regression = RegressionSpec(), two = TwoTaskNet().spec();
  for (const NetSpec& spec : {renamed, swapped, one, regression})
    EXPECT_TRUE(absl::IsDataLoss(PassMeter(0, spec).Restore(PassMeter(0, two).Serialize())));
  EXPECT_THAT(std::string(PassMeter(0, renamed).Restore(PassMeter(0, two).Serialize()).message()),
              HasSubstr("not the bytes of the output 'cost'"));
  EXPECT_TRUE(absl::IsDataLoss(PassMeter(0, two).Restore(PassMeter(0, one).Serialize())));
  EXPECT_TRUE(absl::IsDataLoss(PassMeter(0, regression).Restore(PassMeter(0, one).Serialize())));
}

}  // namespace
}  // namespace regatta::train
