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
  std::pair<std::optional<float>, std::optional<float>> rates_;  // of the last step: dense, table 0
  SyncStage stage_{
      roster_, [this](const SyncStage::Sum& sum) {
        applied_.emplace_back(sum.step, sum.dense.empty() ? 0 : sum.dense[0]);
        samples_ += sum.samples;
        rates_ = {sum.dense_learning_rate, sum.tables.empty() ? std::nullopt : sum.tables[0].learning_rate};
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

TEST_F(SyncStageTest, APartThatLearntNothingCompletesAStepAndWeighsNothing) {
  const auto nothing = [](uint64_t step) {
    StepPart part = Part(0, step, 0, 0);
    part.dense.clear();
    return part;
  };
  ASSERT_TRUE(stage_.Add(0, nothing(0)).ok());
  ASSERT_TRUE(stage_.Add(1, Part(0, 0, 2, 4)).ok());
  ASSERT_TRUE(stage_.Add(2, Part(0, 0, 3, 5)).ok());
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0], (std::pair<uint64_t, float>(0, 5)));
  EXPECT_EQ(samples_, 9u);
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(stage_.Add(rank, nothing(1)).ok());
  ASSERT_EQ(applied_.size(), 2u) << "a step that nobody learnt anything from is one, too";
  EXPECT_EQ(samples_, 9u);
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

TEST_F(SyncStageTest, WorkersThatBringDifferentLearningRatesForAStepAreRefusedByName) {
  enum class Table { kNamed, kLeftOut };
  const auto part = [](std::optional<float> dense, Table named, std::optional<float> rate) {
    StepPart part = Part(0, 0, 1);
    part.dense_learning_rate = dense;
    part.tables.resize(1);
    part.tables[0].width = 1;
    part.tables[0].named = named == Table::kNamed;
    part.tables[0].learning_rate = rate;
    return part;
  };
  const auto refusal = [&](StepPart part) { return std::string(stage_.Add(1, std::move(part)).message()); };
  constexpr float kHalf = 0.5f;
  ASSERT_TRUE(stage_.Add(0, part(kHalf, Table::kNamed, kHalf)).ok());
  EXPECT_EQ(refusal(part(0.25f, Table::kNamed, kHalf)),
            "step 0, dense parameters: worker 1 brings the learning rate 0.25, and worker 0 brings the learning rate "
            "0.5; in sync all workers bring the same for a step");
  EXPECT_EQ(refusal(part(kHalf, Table::kNamed, std::nullopt)),
            "step 0, table 0: worker 1 brings no learning rate, and worker 0 brings the learning rate 0.5; in sync all "
            "workers bring the same for a step");
  EXPECT_TRUE(applied_.empty());
  ASSERT_TRUE(stage_.Add(2, part(kHalf, Table::kNamed, kHalf)).ok());
  ASSERT_EQ(refusal(part(kHalf, Table::kLeftOut, std::nullopt)), "") << "it has nothing of the table";
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(rates_, (std::pair<std::optional<float>, std::optional<float>>(kHalf, kHalf)));
}

// The first rank has nothing of the table: the step has the rate of those who do.
TEST_F(SyncStageTest, AStepHasTheRateOfTheWorkersThatBringTheTable) {
  for (const int rank : {1, 0, 2}) {
    StepPart part = Part(0, 0, 1);
    part.tables.resize(1);
    part.tables[0].width = 1;
    part.tables[0].named = rank == 2;
    if (rank == 2) part.tables[0].learning_rate = 0.125f;
    ASSERT_TRUE(stage_.Add(rank, std::move(part)).ok());
  }
  EXPECT_EQ(rates_.second, 0.125f);
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
