#include "server/lane_register.h"

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <vector>

namespace regatta::server {
namespace {

TEST(LaneRegister, AWorkerHasSoManyLanesAndNoMore) {
  LaneRegister lanes(std::chrono::seconds(10));
  const auto nothing = [] {};
  LaneRegister::Opening other(lanes, "a", nothing);
  EXPECT_EQ(other.Greet(1, 2), absl::OkStatus());
  LaneRegister::Opening first(lanes, "b", nothing);
  EXPECT_EQ(first.Greet(0, 2), absl::OkStatus());
  {
    LaneRegister::Opening second(lanes, "b", nothing), third(lanes, "b", nothing);
    EXPECT_EQ(second.Greet(0, 2), absl::OkStatus());
    EXPECT_TRUE(absl::IsResourceExhausted(third.Greet(0, 2)));
    EXPECT_EQ(lanes.open(0), 2);
  }
  EXPECT_EQ(lanes.open(0), 1);
  LaneRegister::Opening again(lanes, "b", nothing);
  EXPECT_EQ(again.Greet(0, 2), absl::OkStatus());
  EXPECT_EQ(lanes.open(1), 1);
}

TEST(LaneRegister, LanesOfAProcessEndWhenAnotherTakesItsPlace) {
  LaneRegister lanes(std::chrono::seconds(10));
  int ended = 0;
  LaneRegister::Opening old(lanes, "a", [&] { ++ended; }), other(lanes, "b", [&] { ended += 100; });
  EXPECT_EQ(old.Greet(0, 1, 7), absl::OkStatus());
  EXPECT_EQ(other.Greet(1, 1, 7), absl::OkStatus());
  LaneRegister::Opening successor(lanes, "c", [&] { ended += 100; });
  EXPECT_EQ(successor.Greet(0, 1, 8), absl::OkStatus()) << "the other's do not count";
  EXPECT_EQ(ended, 1);
}

// Opens lanes and says which of them were cancelled.
struct Strangers {
  void Open(const std::string& peer, size_t most = 0) {
    const size_t i = cancelled.size();
    cancelled.push_back(false);
    openings.emplace_back(
        lanes, peer, [this, i] { cancelled[i] = true; }, most);
  }
  LaneRegister lanes{std::chrono::seconds(10)};
  std::vector<bool> cancelled;
  std::list<LaneRegister::Opening> openings;
};

TEST(LaneRegister, ASilentLaneMakesRoomForAnother) {
  Strangers strangers;
  strangers.Open("worker");
  for (size_t i = 1; i < LaneRegister::kMostSilent; ++i) strangers.Open("stranger");
  for (const bool cancelled : strangers.cancelled) EXPECT_FALSE(cancelled);
  strangers.Open("another worker");
  EXPECT_FALSE(strangers.cancelled[0]) << "the oldest, but of a connection with one lane";
  EXPECT_TRUE(strangers.cancelled[1]);
  EXPECT_EQ(strangers.lanes.silent(), LaneRegister::kMostSilent);
  EXPECT_EQ(strangers.openings.back().Greet(0, 2), absl::OkStatus());
  strangers.Open("stranger");
  EXPECT_FALSE(strangers.cancelled[2]) << "there was room again";
}

TEST(LaneRegister, AllLanesOfAJobMayOpenAtOnce) {
  Strangers strangers;
  const size_t lanes = 2 * LaneRegister::kMostSilent;
  for (size_t i = 0; i < lanes; ++i) strangers.Open("worker", lanes);
  for (const bool cancelled : strangers.cancelled) EXPECT_FALSE(cancelled);
}

}  // namespace
}  // namespace regatta::server
