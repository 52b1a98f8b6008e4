#include "train/stepper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "base/grouped_keys.h"
#include "comm/async.h"
#include "train/testing/embedded_job.h"

namespace regatta::train {
namespace {

using testing::Embedded;
using ::testing::HasSubstr;

base::TableGrads GradsOf(const base::GroupedKeys& keys, const std::vector<float>& values) {
  return {.keys = keys.view(), .grads = {values.data(), 1, 1}, .slot = {}, .show = {}, .click = {}};
}

TEST(Stepper, ALoopFromOutsideTrainsByTheFormula) {
  Embedded setup(1);
  Stepper stepper(*setup.local, 0);
  const base::GroupedKeys keys({5, 6});
  const base::TableKeys table = keys.view();
  ASSERT_TRUE(stepper.BeginPass({}).ok());
  for (uint64_t step = 0; step < 3; ++step) {
    stepper.BeginStep({.step = step, .batch = step});
    const auto rows = stepper.Pull({&table, 1});
    ASSERT_TRUE(rows.ok()) << rows.status();
    const float want = -0.5f * static_cast<float>(step);  // rate ½, mean gradient 1
    EXPECT_FLOAT_EQ(rows->tables[0].row(0)[0], want);
    EXPECT_FLOAT_EQ(rows->dense[0], 2 * want);
    const std::vector<float> sums = {4, 4}, bias = {8};
    const base::TableGrads grads = GradsOf(keys, sums);
    const base::DenseGrad dense{0, bias};
    ASSERT_TRUE(stepper.Commit(4, {&grads, 1}, {&dense, 1}).ok());
  }
  ASSERT_TRUE(stepper.EndPass().ok());
  EXPECT_FLOAT_EQ(setup.RowOf(5), -1.5f);
  EXPECT_EQ(setup.dense->updates(), 3u);
}

TEST(Stepper, AStepThatPullsSeveralTimesCommitsOneGradientForEachKey) {
  Embedded setup(1);
  Stepper stepper(*setup.local, 0, Stepper::Pulls::kSeveral);
  const base::GroupedKeys first({5, 6}), second({6, 7, 8});
  const base::TableKeys tables[] = {first.view(), second.view()};
  ASSERT_TRUE(stepper.BeginPass({}).ok());
  const std::vector<float> one(2, 1.0f), two(3, 2.0f);
  for (uint64_t step = 0; step < 2; ++step) {
    stepper.BeginStep({.step = step, .batch = step});
    const auto early = stepper.Pull({&tables[0], 1});
    const auto late = stepper.Pull({&tables[1], 1});
    ASSERT_TRUE(early.ok() && late.ok());
    for (size_t i = 0; i < 2; ++i)  // still there after the second pull
      EXPECT_FLOAT_EQ(early->tables[0].row(static_cast<int64_t>(i))[0], step == 0              ? 0.0f
                                                                        : first.keys()[i] == 6 ? -1.5f
                                                                                               : -0.5f);
    const base::TableGrads grads[] = {GradsOf(first, one), GradsOf(second, two)};
    ASSERT_TRUE(stepper.Commit(1, grads, {}).ok());
  }
  EXPECT_FLOAT_EQ(setup.RowOf(5), -1.0f);
  EXPECT_FLOAT_EQ(setup.RowOf(6), -3.0f) << "1 + 2, twice, with a rate of ½";
  EXPECT_FLOAT_EQ(setup.RowOf(7), -2.0f);
}

TEST(Stepper, CallsOutOfOrderAreErrors) {
  Embedded setup(1);
  Stepper stepper(*setup.local, 0);
  const base::GroupedKeys keys({5});
  const base::TableKeys table = keys.view();
  const auto message = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_THAT(message(stepper.Pull({&table, 1}).status()), HasSubstr("no step was begun"));
  stepper.BeginStep({.step = 3});
  EXPECT_THAT(message(stepper.Commit(1, {}, {})), HasSubstr("step 3 has pulled nothing"));
  ASSERT_TRUE(stepper.Pull({&table, 1}).ok());
  EXPECT_THAT(message(stepper.Pull({&table, 1}).status()), HasSubstr("Pulls::kSeveral"));
  ASSERT_TRUE(stepper.Commit(1, {}, {}).ok());
  EXPECT_THAT(message(stepper.Commit(1, {}, {})), HasSubstr("has pulled nothing"));
  stepper.BeginStep({.kind = base::StepKind::kInfer, .step = 4});
  ASSERT_TRUE(stepper.Pull({&table, 1}).ok());
  EXPECT_THAT(message(stepper.Commit(1, {}, {})), HasSubstr("step 4 is one of inference"));
}

// Async over tables of this process: what is fetched ahead is older than the commit that comes between.
TEST(Stepper, AModeThatFetchesAheadPullsSeveralTimesAStep) {
  Embedded setup(1);
  comm::Async async(*setup.client, 1, 4);
  Stepper stepper(async, 0, Stepper::Pulls::kSeveral);
  EXPECT_TRUE(stepper.prefetches());
  const base::GroupedKeys keys({5, 6}), others({6, 7});
  const base::TableKeys table = keys.view(), other = others.view();
  const std::vector<float> sums(2, -2.0f);
  ASSERT_TRUE(stepper.BeginPass({}).ok());
  for (uint64_t step = 0; step < 4; ++step) {
    stepper.BeginStep({.step = step, .batch = step});
    const auto first = stepper.Pull({&table, 1});
    const auto second = stepper.Pull({&other, 1});
    ASSERT_TRUE(first.ok() && second.ok());
    const auto of = [](const base::StepRows& rows, const base::GroupedKeys& among, base::Key key) {
      for (size_t i = 0; i < among.size(); ++i)
        if (among.keys()[i] == key) return rows.tables[0].row(static_cast<int64_t>(i))[0];
      return NAN;
    };
    EXPECT_EQ(of(*first, keys, 6), step == 0 ? 0.0f : 2.0f * static_cast<float>(step - 1)) << "fetched ahead";
    EXPECT_EQ(of(*second, others, 6), 2.0f * static_cast<float>(step)) << "two parts of 2, with a rate of ½";
    ASSERT_TRUE(stepper.Prefetch({.step = step + 1, .batch = step + 1}, {&table, 1}).ok());
    const base::TableGrads grads[] = {GradsOf(keys, sums), GradsOf(others, sums)};
    ASSERT_TRUE(stepper.Commit(1, grads, {}).ok());
  }
  ASSERT_TRUE(stepper.EndPass().ok());
  EXPECT_EQ(setup.RowOf(6), 8.0f);
}

TEST(Stepper, ACommitMayBringItsLearningRates) {
  Embedded setup(1);
  Stepper stepper(*setup.local, 0, Stepper::Pulls::kSeveral);
  const base::GroupedKeys keys({5});
  const base::TableKeys table = keys.view();
  const std::vector<float> sums = {4}, bias = {8};
  const base::DenseGrad dense{0, bias};
  const auto commit = [&](std::optional<float> rate, std::optional<float> dense_rate) {
    stepper.BeginStep({});
    EXPECT_TRUE(stepper.Pull({&table, 1}).ok());
    base::TableGrads grads[] = {GradsOf(keys, sums), GradsOf(keys, sums)};
    grads[0].learning_rate = grads[1].learning_rate = rate;
    return stepper.Commit(4, grads, {&dense, 1}, dense_rate);
  };
  ASSERT_TRUE(commit(0.25f, std::nullopt).ok());  // mean gradients 2 and 2
  EXPECT_EQ(setup.RowOf(5), -0.5f);
  EXPECT_EQ(setup.dense->Values()[0], -1.0f) << "its schedule's ½";
  ASSERT_TRUE(commit(std::nullopt, 2.0f).ok());
  EXPECT_EQ(setup.RowOf(5), -1.5f);
  EXPECT_EQ(setup.dense->Values()[0], -5.0f);
  for (const float rate : {NAN, -1.0f, INFINITY}) {
    EXPECT_EQ(commit(rate, std::nullopt).code(), absl::StatusCode::kInvalidArgument) << rate;
    EXPECT_EQ(commit(std::nullopt, rate).code(), absl::StatusCode::kInvalidArgument) << rate;
  }
  EXPECT_EQ(setup.RowOf(5), -1.5f);
  EXPECT_EQ(setup.dense->Values()[0], -5.0f);
}

TEST(Stepper, GradientsOfOneTableThatDifferInTheirLearningRateAreAnError) {
  Embedded setup(1);
  Stepper stepper(*setup.local, 0);
  const base::GroupedKeys keys({5});
  const base::TableKeys table = keys.view();
  stepper.BeginStep({});
  ASSERT_TRUE(stepper.Pull({&table, 1}).ok());
  const std::vector<float> values(1);
  base::TableGrads grads[] = {GradsOf(keys, values), GradsOf(keys, values)};
  grads[1].learning_rate = 0.5f;
  EXPECT_THAT(std::string(stepper.Commit(1, grads, {}).message()),
              HasSubstr("come with no learning rate and the learning rate 0.5"));
}

TEST(Stepper, GradientsOfOneTableThatDifferInWidthAreAnError) {
  Embedded setup(1);
  Stepper stepper(*setup.local, 0, Stepper::Pulls::kSeveral);
  const base::GroupedKeys keys({5});
  const base::TableKeys table = keys.view();
  stepper.BeginStep({});
  ASSERT_TRUE(stepper.Pull({&table, 1}).ok());
  const std::vector<float> values(2);
  base::TableGrads grads[] = {GradsOf(keys, values), GradsOf(keys, values)};
  grads[1].grads.width = 2;
  EXPECT_THAT(std::string(stepper.Commit(1, grads, {}).message()), HasSubstr("come with 1 and 2 floats a key"));
}

TEST(Stepper, GradientsThatAreNotNumbersAreCounted) {
  Embedded setup(1, table::NanPolicy::kSkip);
  Stepper stepper(*setup.local, 0);
  const base::GroupedKeys keys({5, 6});
  const base::TableKeys table = keys.view();
  stepper.BeginStep({});
  ASSERT_TRUE(stepper.Pull({&table, 1}).ok());
  const std::vector<float> sums = {NAN, 1}, bias = {INFINITY};
  const base::TableGrads grads = GradsOf(keys, sums);
  const base::DenseGrad dense{0, bias};
  ASSERT_TRUE(stepper.Commit(1, {&grads, 1}, {&dense, 1}).ok());
  EXPECT_EQ(stepper.bad_rows(), 1u);
  EXPECT_TRUE(stepper.bad_dense());
}

TEST(Stepper, GradientsThatAreNotNumbersMayBeRefusedBeforeAnythingIsSent) {
  Embedded setup(1, table::NanPolicy::kSkip);
  Stepper stepper(*setup.local, 0, Stepper::Pulls::kOne, nullptr, Stepper::BadGradients::kRefuse);
  const base::GroupedKeys keys({5, 6});
  const base::TableKeys table = keys.view();
  const std::vector<float> bad = {NAN, 1}, good = {1, 1};
  for (const std::vector<float>* sums : {&bad, &good}) {
    stepper.BeginStep({.step = 7});
    const auto rows = stepper.Pull({&table, 1});
    ASSERT_TRUE(rows.ok());
    for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(*rows->tables[0].row(i), 0) << "the refused step has changed a row";
    const base::TableGrads grads = GradsOf(keys, *sums);
    const absl::Status status = stepper.Commit(1, {&grads, 1}, {});
    EXPECT_EQ(status.ok(), sums == &good);
    if (sums == &bad) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("step 7: gradients of 1 rows hold NaN or Inf"));
    }
    EXPECT_EQ(stepper.bad_rows(), sums == &bad ? 1u : 0u);
  }
}

TEST(Stepper, ThreadsThatOwnTheirLoopsLoseNothing) {
  constexpr int kThreads = 4;
  Embedded setup(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&setup, t] {
      Stepper stepper(*setup.local, t, Stepper::Pulls::kSeveral);
      const base::GroupedKeys keys({5, static_cast<base::Key>(100 + t)});
      const base::TableKeys table = keys.view();
      const std::vector<float> sums = {-2, -2};
      const base::TableGrads grads = GradsOf(keys, sums);
      for (uint64_t step = 0; step < 50; ++step) {
        stepper.BeginStep({.step = step * kThreads + static_cast<uint64_t>(t)});
        EXPECT_TRUE(stepper.Pull({&table, 1}).ok());
        EXPECT_TRUE(stepper.Commit(1, {&grads, 1}, {}).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(setup.RowOf(5), 50.0f * kThreads);
  EXPECT_EQ(setup.RowOf(102), 50.0f);
}

}  // namespace
}  // namespace regatta::train
