#include "server/lane_register.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace regatta::server
