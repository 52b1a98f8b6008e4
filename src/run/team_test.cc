#include "run/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>
#include <vector>

#include "run/alone_team.h"
#include "run/rounds.h"
#include "run/testing/thread_team.h"

namespace regatta::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What each of three workers makes of `fn`.
template <typename Result>
std::array<Result, 3> OfThree(ThreadTeam& shared, const std::function<Result(Team& team)>& fn) {
  std::array<Result, 3> results{};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] { results[static_cast<size_t>(rank)] = fn(*shared.Join(rank)); });
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(Team, EveryWorkerLeavesARoundWithTheSame) {
  ThreadTeam shared(3);
  EXPECT_THAT(
      OfThree<uint64_t>(
          shared,
          [](Team& team) { return AllReduceMax(team, rounds::StepsOf("epoch 0"), 10u * (team.rank() + 1)).value(); }),
      ElementsAre(30, 30, 30));
  EXPECT_THAT(OfThree<uint64_t>(
                  shared, [](Team& team) { return AllReduceSum(team, rounds::BadLinesOf("epoch 0"), 5).value(); }),
              ElementsAre(15, 15, 15));
}

TEST(Team, APassThatOneWorkerWasToldToStopIsStoppedByItsSignalForAll) {
  ThreadTeam shared(3);
  const auto signals = OfThree<uint32_t>(shared, [](Team& team) {
    EndMessage mine;
    mine.set_stopped(team.rank() != 2);
    if (team.rank() == 2) mine.set_signal(15);  // its own data had ended
    const EndMessage all = GatherEnd(team, "epoch 0", mine).value();
    EXPECT_TRUE(all.stopped());
    EXPECT_FALSE(all.out_of_time());
    return all.signal();
  });
  EXPECT_THAT(signals, ElementsAre(15, 15, 15));
  OfThree<bool>(shared, [](Team& team) {
    EXPECT_FALSE(GatherEnd(team, "epoch 1", EndMessage()).value().stopped());
    return true;
  });
}

TEST(Team, TheFirstWorkersMessageGoesToAll) {
  ThreadTeam shared(3);
  const auto epochs = OfThree<uint64_t>(shared, [](Team& team) {
    StartMessage start;
    start.set_epoch(team.rank() == 0 ? 7 : 99);
    return Broadcast(team, rounds::StartAt(), start).value().epoch();
  });
  EXPECT_THAT(epochs, ElementsAre(7, 7, 7));
}

TEST(Team, AnErrorAtOneWorkerIsOneAtAllAndTheRoundMayBeUsedAgain) {
  ThreadTeam shared(3);
  const std::function<absl::Status(Team&)> save = [](Team& team) {
    return AllOk(team, rounds::SavedEpoch(0), team.chief() ? absl::DataLossError("disk") : absl::OkStatus());
  };
  const auto failed = OfThree<absl::Status>(shared, save);
  EXPECT_EQ(failed[0], absl::DataLossError("disk"));
  EXPECT_THAT(std::string(failed[1].message()), HasSubstr("worker 0: disk"));
  const std::function<absl::Status(Team&)> again = [](Team& team) {
    return AllOk(team, rounds::SavedEpoch(0), absl::OkStatus());
  };
  EXPECT_THAT(OfThree<absl::Status>(shared, again), testing::Each(absl::OkStatus()));
}

TEST(Team, AWorkerThatReturnsGetsTheAnswerThatItsPredecessorGot) {
  ThreadTeam shared(3);
  OfThree<uint64_t>(shared, [](Team& team) {
    return AllReduceMax(team, rounds::StepsOf("epoch 0"), 10u * (team.rank() + 1)).value();
  });
  const auto returned = shared.Return(2, {.pass = 1, .low = 4});
  ASSERT_NE(returned->resume_point(), nullptr);
  EXPECT_TRUE(returned->Completed(rounds::StepsOf("epoch 0")));
  EXPECT_FALSE(returned->Completed(rounds::StepsOf("epoch 1")));
  EXPECT_EQ(AllReduceMax(*returned, rounds::StepsOf("epoch 0"), 1000).value(), 30u) << "not what it brings now";
}

TEST(Team, AloneEveryRoundIsOverAtOnce) {
  AloneTeam team;
  EXPECT_TRUE(team.chief());
  EXPECT_EQ(AllReduceMax(team, rounds::StepsOf("epoch 0"), 3).value(), 3u);
  EXPECT_EQ(AllOk(team, rounds::Open(), absl::DataLossError("disk")), absl::DataLossError("disk"));
  EXPECT_FALSE(team.Completed(rounds::StepsOf("epoch 0")));
}

}  // namespace
}  // namespace regatta::run
