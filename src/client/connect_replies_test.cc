#include "client/connect_replies.h"

#include <gtest/gtest.h>

namespace regatta::client {
namespace {

ps::LaneProgress Pushed(uint64_t pass, uint64_t low, uint64_t window, uint64_t next_step) {
  ps::LaneProgress lane;
  lane.set_pass(pass);
  lane.set_low(low);
  lane.set_window(window);
  lane.set_next_step(next_step);
  return lane;
}

ps::ConnectReply ReplyOf(const std::vector<ps::LaneProgress>& lanes) {
  ps::ConnectReply reply;
  for (const ps::LaneProgress& lane : lanes) *reply.add_lanes() = lane;
  return reply;
}

// Two servers with a sparse and a dense lane each.
JobLayout TwoServers() {
  JobLayout layout;
  layout.lanes = {2, 1};
  layout.dense_size = 8;
  return layout;
}

TEST(ConnectReplies, AWorkerResumesBehindWhatEveryLaneHas) {
  const std::vector<ps::ConnectReply> replies{
      ReplyOf({Pushed(2, 5, 0b10, 7), Pushed(2, 4, 0, 4)}),
      ReplyOf({Pushed(2, 6, 0, 6), Pushed(1, 90, 0, 3)}),  // the last one has nothing of pass 2 yet
  };
  const ResumePoint point = ResumePointOf(replies, TwoServers()).value();
  EXPECT_FALSE(point.returns());
  EXPECT_EQ(point.position.pass, 2u);
  EXPECT_EQ(point.position.low, 0u);
  EXPECT_EQ(point.step, 3u);
  ASSERT_EQ(point.dense.size(), 2u);
  EXPECT_EQ(point.dense[0].low, 4u);
  EXPECT_EQ(point.dense[1].low, 0u);
  EXPECT_EQ(point.dense[1].pass, 2u);
}

TEST(ConnectReplies, DenseLanesOfAModelWithoutDenseParametersCountInStepsTogetherOnly) {
  const std::vector<ps::ConnectReply> replies{ReplyOf({Pushed(0, 9, 0, 9), Pushed(0, 0, 0, 0)})};
  JobLayout layout = TwoServers();
  layout.lanes.servers = 1;
  layout.dense_size = 0;
  EXPECT_EQ(ResumePointOf(replies, layout).value().position.low, 9u);
  EXPECT_EQ(ResumePointOf(replies, layout).value().step, 9u);
  layout.steps_together = true;
  EXPECT_EQ(ResumePointOf(replies, layout).value().position.low, 0u);
}

TEST(ConnectReplies, ThePredecessorAndTheRoundsThatAreOverAreKnown) {
  std::vector<ps::ConnectReply> replies(2);
  replies[1].set_before("there\n");
  ps::Meeting& met = *replies[0].add_met();
  met.set_name("epoch");
  met.set_round(3);
  const ResumePoint point = ResumePointOf(replies, TwoServers()).value();
  EXPECT_EQ(point.predecessor, "there\\n");  // made visible
  EXPECT_TRUE(point.Completed("epoch", 3));
  EXPECT_FALSE(point.Completed("epoch", 2));
}

TEST(ConnectReplies, ServersThatStartedFromDifferentSavesAreNamedWithThem) {
  ps::LoadedSave none, save;
  save.set_epochs(2);
  save.set_steps(30);
  save.set_identity(0xabc);
  EXPECT_EQ(CheckSameSave("a", save, "b", save), absl::OkStatus());
  EXPECT_EQ(CheckSameSave("a", none, "b", save),
            absl::FailedPreconditionError("a started from no save, b from a save of epoch 2, step 30 "
                                          "(0000000000000abc); start all servers from copies of one save, or from "
                                          "none"));
}

}  // namespace
}  // namespace regatta::client
