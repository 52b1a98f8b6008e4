#include "run/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "run/alone_team.h"
#include "run/testing/thread_team.h"

namespace regatta::run {
namespace {

// Two workers finish so many epochs of 10 and 12 batches.
void FinishEpochs(ThreadTeam& shared, uint64_t epochs) {
  const auto work = [&](int rank) {
    const auto team = shared.Join(rank);
    Session session(*team);
    ASSERT_EQ(session.Begin({}), absl::OkStatus());
    while (session.epoch() < epochs) {
      EXPECT_FALSE(session.over());
      EXPECT_FALSE(session.EndPass({}).value().stopped());
      ASSERT_EQ(session.GatherMetrics(absl::StrCat("meter ", rank)).value().size(), 2u);
      ASSERT_EQ(session.FinishEpoch(rank == 0 ? 10 : 12), absl::OkStatus());
    }
    EXPECT_EQ(session.first_step(), 12 * epochs) << "of the worker with the most";
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
}

TEST(Session, AloneItCountsEpochsAndSteps) {
  AloneTeam team;
  Session session(team);
  ASSERT_EQ(session.Begin({.epoch = 2, .first_step = 50, .position = {.pass = 2, .low = 3, .window = 5}}),
            absl::OkStatus());
  EXPECT_EQ(session.position(), (base::DataPosition{2, 3, 5}));
  EXPECT_EQ(session.began_at(), 5u);
  EXPECT_FALSE(session.returns());
  EXPECT_FALSE(session.over());
  ASSERT_EQ(session.FinishEpoch(20), absl::OkStatus());
  EXPECT_EQ(session.epoch(), 3u);
  EXPECT_EQ(session.first_step(), 70u);
  EXPECT_EQ(session.position(), (base::DataPosition{3, 0, 0}));
  EXPECT_EQ(session.began_at(), 0u);
}

TEST(Session, OneThatReturnsGoesOnInTheMiddleOfTheEpoch) {
  ThreadTeam shared(2);
  FinishEpochs(shared, 2);
  const auto team = shared.Return(1, {.pass = 2, .low = 4, .window = 1});
  Session session(*team);
  ASSERT_EQ(session.Begin({}), absl::OkStatus());
  EXPECT_TRUE(session.returns());
  EXPECT_FALSE(session.over());
  EXPECT_EQ(session.epoch(), 2u);
  EXPECT_EQ(session.first_step(), 24u);
  EXPECT_EQ(session.position(), (base::DataPosition{2, 4, 1}));
  EXPECT_EQ(session.began_at(), 0u);
}

TEST(Session, OneThatReturnsAfterAnEpochComesToItsEndAgain) {
  ThreadTeam shared(2);
  FinishEpochs(shared, 2);
  const auto team = shared.Return(1, {.pass = 1, .low = 12});
  Session session(*team);
  ASSERT_EQ(session.Begin({}), absl::OkStatus());
  EXPECT_EQ(session.epoch(), 1u);
  EXPECT_TRUE(session.over());
  EXPECT_FALSE(session.EndPass({}).value().stopped());
  EXPECT_EQ(session.GatherMetrics("another").value().at(1), "meter 1") << "as its predecessor said";
  ASSERT_EQ(session.FinishEpoch(0), absl::OkStatus());
  EXPECT_EQ(session.epoch(), 2u);
  EXPECT_EQ(session.first_step(), 24u);
  EXPECT_FALSE(session.over());
  EXPECT_FALSE(session.returns());
  EXPECT_EQ(session.position(), (base::DataPosition{2, 0, 0}));
}

TEST(Session, OneWhosePredecessorHadBegunNothingBeginsWhereTheJobDoes) {
  ThreadTeam shared(2);
  const auto team = shared.Return(0, {});
  Session session(*team);
  ASSERT_EQ(session.Begin({.epoch = 0, .first_step = 7, .position = {.pass = 0, .low = 40}}), absl::OkStatus());
  EXPECT_EQ(session.epoch(), 0u);
  EXPECT_EQ(session.first_step(), 7u);
  EXPECT_EQ(session.position().low, 40u) << "the batches of the save are not trained again";
  EXPECT_EQ(session.began_at(), 40u);
}

TEST(Session, WhatServersHaveForgottenIsAnErrorNotAWait) {
  ThreadTeam shared(2);
  const auto team = shared.Return(1, {.pass = 5, .low = 4});
  Session session(*team);
  const absl::Status status = session.Begin({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("steps of epoch 4"));
}

}  // namespace
}  // namespace regatta::run
