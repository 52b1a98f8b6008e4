#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "train/pass_meter.h"
#include "train/testing/embedded_job.h"
#include "train/testing/logistic_net.h"

namespace regatta::train {
namespace {

using testing::Counting;
using testing::Embedded;
using ::testing::HasSubstr;
using testing::LogisticNet;
using testing::Numbers;
using testing::SpoiltNet;
using testing::Watcher;

NetMaker Logistic() { return testing::NetsOf<LogisticNet>(); }

TEST(Trainer, AStopEndsTheWaitForData) {
  for (const int threads : {1, 3}) {
    Embedded setup(threads);
    Numbers data(20);
    data.hang_at = 5;
    Watcher watcher;
    data.at_hang = &watcher.stop_asked;  // heeded by those who wait only: the five batches that came are trained on
    Trainer trainer(Logistic(), *setup.local, setup.options);
    const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_FALSE(end->complete);
    EXPECT_EQ(end->position.low, 5u);
    data.hang_at = UINT64_MAX;
    watcher.stop_asked = false;
    const auto rest = trainer.RunPass(data, base::StepKind::kTrain, end->position, 0, watcher);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_TRUE(rest->complete);
    EXPECT_EQ(watcher.seen.size(), 20u);
  }
}

TEST(Trainer, OneThreadWalksEveryBatchInOrder) {
  Embedded setup(1);
  Numbers data(20);
  Watcher watcher;
  Trainer trainer(Logistic(), *setup.local, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->complete);
  EXPECT_EQ(end->position.low, 20u);
  EXPECT_EQ(watcher.steps, 20u);
  EXPECT_EQ(setup.sparse->rows(), 14u);
  EXPECT_EQ(setup.dense->updates(), 20u);
}

TEST(Trainer, InferenceChangesNothing) {
  Embedded setup(2);
  Numbers data(20);
  Watcher watcher;
  Trainer trainer(Logistic(), *setup.local, setup.options);
  ASSERT_TRUE(trainer.RunPass(data, base::StepKind::kInfer, {}, 0, watcher).ok());
  EXPECT_EQ(watcher.steps, 20u);
  EXPECT_EQ(setup.sparse->rows(), 0u);
  EXPECT_EQ(setup.dense->updates(), 0u);
}

TEST(Trainer, ManyThreadsPauseWithNoStepInFlight) {
  Embedded setup(4);
  Numbers data(400);
  Counting counting(*setup.local);
  Watcher watcher;
  watcher.pause_every = 7;
  watcher.counting = &counting;
  Trainer trainer(Logistic(), counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(watcher.seen.size(), 400u);
  EXPECT_EQ(setup.dense->updates(), 400u);
  EXPECT_GT(watcher.pauses, 10);
}

TEST(Trainer, AHundredThreadsTrainAtOnce) {
  for (const bool ahead : {false, true}) {
    Embedded setup(100);
    Numbers data(500);
    Counting counting(*setup.local);
    counting.meet = 100;
    counting.ahead = ahead;
    Watcher watcher;
    watcher.pause_every = 90;
    Trainer trainer(Logistic(), counting, setup.options);
    const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(watcher.seen.size(), 500u);
    EXPECT_EQ(end->position.low, 500u);
  }
}

TEST(Trainer, APauseComesBetweenTwoPushes) {
  Embedded setup(3);
  Numbers data(400);
  Counting counting(*setup.local);
  counting.batches = 5;
  struct Aligned : Watcher {
    absl::Status AtPause(const base::DataPosition& position) override {
      EXPECT_EQ(position.window, 0u);
      EXPECT_EQ(position.low % 5, 0u);
      return Watcher::AtPause(position);
    }
  } watcher;
  watcher.pause_every = 7;
  watcher.counting = &counting;
  Trainer trainer(Logistic(), counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(watcher.seen.size(), 400u);
  EXPECT_GT(watcher.pauses, 10);
  EXPECT_EQ(watcher.ends, 1);
}

// Where workers agree on it, a pass ends at a pause, with no batch more, or before its first.
TEST(Trainer, APassEndsAtAPauseWhereItIsToldTo) {
  for (const int threads : {1, 3}) {
    Embedded setup(threads);
    Numbers data(400);
    Counting counting(*setup.local);
    counting.batches = 5;
    Watcher watcher;
    watcher.pause_every = 7;
    watcher.stop_at_pause = 2;
    watcher.counting = &counting;
    Trainer trainer(Logistic(), counting, setup.options);
    const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_FALSE(end->complete);
    EXPECT_EQ(watcher.pauses, 2);
    EXPECT_EQ(end->position.low, watcher.seen.size());
    EXPECT_EQ(end->position.low % 5, 0u);
    const auto none = trainer.RunPass(data, base::StepKind::kTrain, end->position, 0, watcher);
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_FALSE(none->complete);
    EXPECT_EQ(none->position.low, end->position.low);
    EXPECT_EQ(watcher.seen.size(), end->position.low);
    EXPECT_EQ(watcher.ends, 2);
  }
}

TEST(Trainer, APauseThatTheDataDoesNotReachIsNone) {
  Embedded setup(2);
  Numbers data(8);
  Counting counting(*setup.local);
  counting.batches = 5;
  Watcher watcher;
  watcher.pause_every = 7;
  Trainer trainer(Logistic(), counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->complete);
  EXPECT_EQ(watcher.seen.size(), 8u);
  EXPECT_EQ(watcher.pauses, 0);
}

TEST(Trainer, AStoppedPassGoesOnWhereItWas) {
  Embedded setup(3);
  Numbers data(100);
  Trainer trainer(Logistic(), *setup.local, setup.options);
  Watcher first;
  first.stop_after = 30;
  const auto stopped = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, first);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(stopped->complete);
  Watcher second;
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, stopped->position, 0, second);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->complete);
  EXPECT_EQ(first.seen.size() + second.seen.size(), 100u);
  EXPECT_EQ(setup.dense->updates(), 100u);
}

// A thread holds its next batch while another one meets the end.
TEST(Trainer, BatchesThatAreFetchedAheadAreTrainedOn) {
  for (const int threads : {1, 2, 3, 4}) {
    for (const uint64_t batches : {1, 2, 3, 5, 20, 100}) {
      for (int round = 0; round < 10; ++round) {
        Embedded setup(threads);
        Numbers data(batches);
        Counting counting(*setup.local);
        counting.ahead = true;
        Watcher watcher;
        watcher.pause_every = round % 2 == 0 ? 0 : 3;
        watcher.counting = &counting;
        Trainer trainer(Logistic(), counting, setup.options);
        const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
        ASSERT_TRUE(end.ok()) << end.status();
        EXPECT_TRUE(end->complete);
        EXPECT_EQ(end->position.low, batches);
        EXPECT_EQ(watcher.seen.size(), batches) << threads << " threads";
      }
    }
  }
}

// A stop among the last batches: either all have been trained on, or the pass says that some are left.
TEST(Trainer, AStopNearTheEndLosesNoBatchThatWasFetchedAhead) {
  for (uint64_t stop_after = 10; stop_after <= 20; ++stop_after) {
    for (int round = 0; round < 10; ++round) {
      Embedded setup(3);
      Numbers data(20);
      Counting counting(*setup.local);
      counting.ahead = true;
      Trainer trainer(Logistic(), counting, setup.options);
      Watcher first;
      first.stop_after = stop_after;
      const auto stopped = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, first);
      ASSERT_TRUE(stopped.ok()) << stopped.status();
      if (stopped->complete) {
        EXPECT_EQ(first.seen.size(), 20u);
        continue;
      }
      Watcher second;
      const auto end = trainer.RunPass(data, base::StepKind::kTrain, stopped->position, 0, second);
      ASSERT_TRUE(end.ok()) << end.status();
      EXPECT_EQ(first.seen.size() + second.seen.size(), 20u);
      EXPECT_EQ(setup.dense->updates(), 20u);
    }
  }
}

TEST(Trainer, AFailedCommitEndsThePassWithItsError) {
  Embedded setup(3);
  Numbers data(100);
  Counting counting(*setup.local);
  counting.fail_at = 40;
  Watcher watcher;
  Trainer trainer(Logistic(), counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  EXPECT_EQ(end.status().code(), absl::StatusCode::kUnavailable) << end.status();
}

TEST(Trainer, GradientsThatAreNotNumbersAreCounted) {
  static std::vector<float> spoilt;  // Inf in the first slot's column of every sample
  static const float inf = INFINITY;
  const NetMaker rows = testing::NetsOf<SpoiltNet>(nullptr, [](auto& lookups, auto&) {
    spoilt.assign(lookups[0].floats().begin(), lookups[0].floats().end());
    for (size_t i = 0; i < spoilt.size(); i += 2) spoilt[i] = inf;
    lookups[0].data = spoilt.data();
    return absl::OkStatus();
  });
  const NetMaker dense = testing::NetsOf<SpoiltNet>(nullptr, [](auto&, auto& parameters) {
    parameters[0].data = const_cast<float*>(&inf);
    return absl::OkStatus();
  });
  Numbers data(5);
  for (const bool of_rows : {true, false}) {
    Embedded setup(1, table::NanPolicy::kSkip);
    Watcher watcher;
    const auto end = Trainer(of_rows ? rows : dense, *setup.local, setup.options)
                         .RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(watcher.bad_rows, of_rows ? 5u * 4 : 0u);  // the first slot's ids of every batch
    EXPECT_EQ(watcher.bad_dense, of_rows ? 0u : 5u);
    EXPECT_EQ(setup.sparse->skipped_gradients(), watcher.bad_rows);
    EXPECT_EQ(setup.dense->skipped_gradients(), watcher.bad_dense);
  }
}
TEST(Trainer, ALossThatIsNotANumberCommitsNothingOfItsStep) {
  Embedded setup(1);
  Numbers data(10, /*bad=*/4);
  Watcher watcher;
  Trainer trainer(Logistic(), *setup.local, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  EXPECT_EQ(end.status().message(), "bad batch 4");
  EXPECT_EQ(setup.dense->updates(), 4u);
}

TEST(Trainer, AFailedPauseEndsThePass) {
  Embedded setup(2);
  Numbers data(50);
  Watcher watcher;
  watcher.pause_every = 5;
  watcher.pause_status = absl::DataLossError("no disk");
  Trainer trainer(Logistic(), *setup.local, setup.options);
  EXPECT_EQ(trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher).status().message(), "no disk");
  EXPECT_EQ(watcher.pauses, 1);
}

}  // namespace
}  // namespace regatta::train
