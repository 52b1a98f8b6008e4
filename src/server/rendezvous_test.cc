#include "server/rendezvous.h"

#include <gtest/gtest.h>

#include <thread>

namespace regatta::server {
namespace {

Identity Worker(int rank) { return {rank, 7, "here"}; }

bool Never() { return false; }

// Worker 1 is lost while worker 0 waits: what worker 0 is told.
absl::StatusOr<std::shared_ptr<const Rendezvous::Payloads>> MeetWhileOneIsLost(LossPolicy policy) {
  Roster roster(2, policy);
  Rendezvous rendezvous(roster);
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(roster.Join(Worker(rank)).ok());
  std::thread loss([&] { roster.Lose(1, "no heartbeat"); });
  auto met = rendezvous.Meet(0, "epoch", 0, "a", {}, Never);
  loss.join();
  return met;
}

TEST(Rendezvous, WhereTheJobEndsWithAWorkerNobodyMeetsWithoutIt) {
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(MeetWhileOneIsLost(LossPolicy::kFail).status().code(), absl::StatusCode::kAborted) << i;
}

TEST(Rendezvous, WhereTheOthersGoOnTheyMeetWithoutIt) {
  const auto met = MeetWhileOneIsLost(LossPolicy::kShrink);
  ASSERT_TRUE(met.ok()) << met.status();
  EXPECT_EQ(**met, (Rendezvous::Payloads{{0, "a"}}));
}

}  // namespace
}  // namespace regatta::server
