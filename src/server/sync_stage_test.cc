#include "server/sync_stage.h"

#include <gtest/gtest.h>

#include <thread>

namespace regatta::server {
namespace {

class SyncStageTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(roster_.Join({rank, 1, "here"}).ok());
    roster_.Listen([this] { stage_.CompleteSteps(); });
  }
  static StepPart Part(uint64_t pass, uint64_t step, float value, uint32_t samples = 1) {
    StepPart part;
    part.pass = pass;
    part.step = step;
    part.samples = samples;
    part.dense = {value};
    return part;
  }

  Roster roster_{3, base::LossPolicy::kShrink};
  std::vector<std::pair<uint64_t, float>> applied_;  // step, sum
  uint32_t samples_ = 0;
  SyncStage stage_{roster_, [this](const SyncStage::Sum& sum) {
                     applied_.emplace_back(sum.step, sum.dense[0]);
                     samples_ += sum.samples;
                     return absl::OkStatus();
                   }};
};

TEST_F(SyncStageTest, AppliesAStepWhenEverybodyHasBroughtIt) {
  ASSERT_TRUE(stage_.Add(2, Part(0, 0, 4, 5)).ok());
  ASSERT_TRUE(stage_.Add(0, Part(0, 0, 1, 3)).ok());
  EXPECT_TRUE(applied_.empty());
  ASSERT_TRUE(stage_.Add(1, Part(0, 0, 2, 4)).ok());
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0], (std::pair<uint64_t, float>(0, 7)));
  EXPECT_EQ(samples_, 12u);
  EXPECT_EQ(stage_.AwaitBefore(1), absl::OkStatus());
}

TEST_F(SyncStageTest, GoesOnWithoutThoseWhoLeftThePassAndExpectsThemInTheNext) {
  ASSERT_TRUE(stage_.Begin(0, 0).ok());
  ASSERT_TRUE(stage_.LeavePass(1, 0).ok());
  ASSERT_TRUE(stage_.Add(0, Part(0, 0, 1)).ok());
  ASSERT_TRUE(stage_.Add(2, Part(0, 0, 1)).ok());
  EXPECT_EQ(applied_.size(), 1u);
  ASSERT_TRUE(stage_.Begin(1, 1).ok());
  ASSERT_TRUE(stage_.Add(0, Part(1, 1, 1)).ok());
  ASSERT_TRUE(stage_.Add(2, Part(1, 1, 1)).ok());
  EXPECT_EQ(applied_.size(), 1u) << "worker 1 takes part in pass 1";
  ASSERT_TRUE(stage_.Add(1, Part(1, 1, 1)).ok());
  EXPECT_EQ(applied_.size(), 2u);
}

TEST_F(SyncStageTest, APartThatCannotBeTakenEndsTheWaitOfAll) {
  ASSERT_TRUE(stage_.Add(0, Part(0, 0, 1)).ok());
  std::thread waiting([this] { EXPECT_TRUE(absl::IsResourceExhausted(stage_.AwaitBefore(1))); });
  const StageRequest unwritable{.log = [] { return absl::ResourceExhaustedError("no room"); }};
  EXPECT_TRUE(absl::IsResourceExhausted(stage_.Add(1, Part(0, 0, 1), unwritable)));
  waiting.join();
  EXPECT_TRUE(absl::IsResourceExhausted(stage_.Add(1, Part(0, 0, 2))));
  EXPECT_TRUE(applied_.empty());
}

TEST_F(SyncStageTest, ALostWorkerCompletesWhatWaitedForIt) {
  ASSERT_TRUE(stage_.Add(0, Part(0, 0, 1)).ok());
  ASSERT_TRUE(stage_.Add(1, Part(0, 0, 1)).ok());
  std::thread waiting([this] { EXPECT_EQ(stage_.AwaitBefore(1), absl::OkStatus()); });
  roster_.Lose(2, "test");
  waiting.join();
  EXPECT_EQ(applied_.size(), 1u);
}

TEST_F(SyncStageTest, TheJobsFailureEndsEveryWait) {
  std::thread waiting([this] { EXPECT_EQ(stage_.AwaitBefore(1).code(), absl::StatusCode::kAborted); });
  roster_.Fail(absl::AbortedError("over"));
  waiting.join();
}

TEST_F(SyncStageTest, AStepComesOnceAndInOrder) {
  ASSERT_TRUE(stage_.Add(0, Part(0, 0, 1)).ok());
  EXPECT_EQ(stage_.Add(0, Part(0, 0, 1)).code(), absl::StatusCode::kFailedPrecondition) << "twice";
  EXPECT_EQ(stage_.Add(1, Part(9, 0, 1)).code(), absl::StatusCode::kFailedPrecondition) << "of another pass";
  ASSERT_TRUE(stage_.Add(1, Part(0, 0, 1)).ok());
  ASSERT_TRUE(stage_.Add(2, Part(0, 0, 1)).ok());
  EXPECT_EQ(stage_.Add(2, Part(0, 0, 1)).code(), absl::StatusCode::kFailedPrecondition) << "applied already";
}

TEST_F(SyncStageTest, AResumedRunBeginsAtItsStep) {
  ASSERT_TRUE(stage_.Begin(3, 100).ok());
  EXPECT_EQ(stage_.AwaitBefore(100), absl::OkStatus());
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(stage_.Add(rank, Part(3, 100, 1)).ok());
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0].first, 100u);
}

TEST_F(SyncStageTest, APassBeginsAtOneStepForEverybody) {
  ASSERT_TRUE(stage_.Begin(3, 100).ok());
  EXPECT_TRUE(stage_.Begin(3, 100).ok());
  EXPECT_EQ(stage_.Begin(3, uint64_t{1} << 40).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stage_.Begin(2, 100).code(), absl::StatusCode::kFailedPrecondition) << "a pass before";
  EXPECT_EQ(stage_.LeavePass(0, 4).code(), absl::StatusCode::kFailedPrecondition) << "a pass that has not begun";
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(stage_.Add(rank, Part(3, 100, 1)).ok());
  EXPECT_EQ(applied_.size(), 1u);
}

TEST_F(SyncStageTest, NobodyLeavesAPassBeforeOneBegins) {
  EXPECT_EQ(stage_.LeavePass(1, uint64_t{1} << 47).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stage_.LeavePass(1, 0).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SyncStageTest, ALaterPassBeginsNearThePresent) {
  ASSERT_TRUE(stage_.Begin(3, 100).ok()) << "the first may begin anywhere";
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(stage_.Add(rank, Part(3, 100, 1)).ok());
  EXPECT_EQ(stage_.Begin(4, uint64_t{1} << 40).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(stage_.Begin(uint64_t{1} << 40, 101).code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(stage_.Begin(4, 101).ok()) << "as if nobody had asked for the others";
}

TEST_F(SyncStageTest, StepsFarAheadAreNotKept) {
  EXPECT_TRUE(stage_.Add(0, Part(0, SyncStage::kMaxStepsAhead, 1)).ok());
  EXPECT_EQ(stage_.Add(0, Part(0, SyncStage::kMaxStepsAhead + 1, 1)).code(), absl::StatusCode::kOutOfRange);
  StageRequest record;
  record.origin = RequestOrigin::kLog;
  EXPECT_TRUE(stage_.Add(0, Part(0, SyncStage::kMaxStepsAhead + 1, 1), record).ok()) << "replay lags behind";
}

TEST_F(SyncStageTest, WhatIsRefusedIsNotLogged) {
  int logged = 0;
  const StageRequest request{RequestOrigin::kWorker, [&] { return ++logged; }};
  EXPECT_TRUE(stage_.Add(0, Part(0, 0, 1), request).ok());
  EXPECT_FALSE(stage_.Add(0, Part(0, 0, 1), request).ok());
  EXPECT_FALSE(stage_.Add(0, Part(0, 99, 1), request).ok());
  EXPECT_FALSE(stage_.Begin(0, 50, request).ok()) << "step 0 is not complete";
  EXPECT_EQ(logged, 1);
}

}  // namespace
}  // namespace regatta::server
