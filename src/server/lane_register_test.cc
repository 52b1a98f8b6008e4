#include "server/lane_register.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace regatta::server {
namespace {

TEST(LaneRegister, AWorkerHasSoManyLanesAndNoMore) {
  LaneRegister lanes(std::chrono::seconds(10));
  grpc::ServerContext contexts[4];
  LaneRegister::Opening other(lanes, contexts[0]);
  EXPECT_EQ(other.Greet(1, 2), absl::OkStatus());
  LaneRegister::Opening first(lanes, contexts[1]);
  EXPECT_EQ(first.Greet(0, 2), absl::OkStatus());
  {
    LaneRegister::Opening second(lanes, contexts[2]), third(lanes, contexts[3]);
    EXPECT_EQ(second.Greet(0, 2), absl::OkStatus());
    EXPECT_TRUE(absl::IsResourceExhausted(third.Greet(0, 2)));
    EXPECT_EQ(lanes.open(0), 2);
  }
  EXPECT_EQ(lanes.open(0), 1);
  LaneRegister::Opening again(lanes, contexts[3]);
  EXPECT_EQ(again.Greet(0, 2), absl::OkStatus());
  EXPECT_EQ(lanes.open(1), 1);
}

TEST(LaneRegister, StrangersLeaveRoomForOthers) {
  LaneRegister lanes(std::chrono::seconds(10));
  std::vector<std::unique_ptr<grpc::ServerContext>> contexts;
  std::vector<std::unique_ptr<LaneRegister::Opening>> strangers;
  const auto open = [&] {
    contexts.push_back(std::make_unique<grpc::ServerContext>());
    strangers.push_back(std::make_unique<LaneRegister::Opening>(lanes, *contexts.back()));
    return strangers.back()->MayWait();
  };
  for (size_t i = 0; i < LaneRegister::kMostSilent; ++i) EXPECT_EQ(open(), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(open()));
  strangers.pop_back();
  EXPECT_EQ(strangers.back()->Greet(0, 2), absl::OkStatus());
  EXPECT_EQ(open(), absl::OkStatus());
}

}  // namespace
}  // namespace regatta::server
