#include "server/push_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/lane_session.h"
#include "server/testing/small_job.h"

namespace regatta::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(PushMemory, IsGivenBackWithWhatHoldsIt) {
  const auto memory = std::make_shared<PushMemory>(3, 100);
  {
    HeldMemory first;
    EXPECT_EQ(first.Hold(memory, 60, RequestOrigin::kWorker), absl::OkStatus());
    HeldMemory moved = std::move(first);
    EXPECT_EQ(memory->used(), 60u);
    HeldMemory second;
    const absl::Status refused = second.Hold(memory, 50, RequestOrigin::kWorker);
    EXPECT_TRUE(absl::IsResourceExhausted(refused));
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("worker 3"), HasSubstr("110 bytes"), HasSubstr("100"), HasSubstr("--push_memory")));
    EXPECT_EQ(memory->used(), 60u);
    EXPECT_EQ(moved.Hold(memory, 40, RequestOrigin::kWorker), absl::OkStatus());
    EXPECT_EQ(second.Hold(memory, 50, RequestOrigin::kWorker), absl::OkStatus());
    EXPECT_EQ(memory->used(), 90u);
    moved = {};
    EXPECT_EQ(memory->used(), 50u);
  }
  EXPECT_EQ(memory->used(), 0u);
}

TEST(PushMemory, WhatTheLogHasIsHeldInAnyCase) {
  const auto memory = std::make_shared<PushMemory>(0, 10);
  HeldMemory held;
  EXPECT_EQ(held.Hold(memory, 50, RequestOrigin::kLog), absl::OkStatus());
  EXPECT_EQ(memory->used(), 50u);
}

// Two workers in sync: what the first one pushes waits for the second.
class HeldPushesTest : public testing::Test {
 protected:
  static constexpr size_t kPushBytes = 4 * (sizeof(base::Key) + kSmallDim * sizeof(float));
  static constexpr size_t kDenseBytes = kSmallDense * sizeof(float);

  void SetUp() override { ASSERT_TRUE(job_->roster().Join(kSecond).ok()); }
  static absl::Status Ask(LaneSession& session, ps::FrameHeader header, uint64_t id, const std::string& body) {
    header.set_id(id);
    wire::FrameWriter writer(header, body.size());
    writer.Append(body.data(), body.size());
    grpc::ByteBuffer request = writer.Finish();
    grpc::ByteBuffer reply = session.Answer(request);
    wire::FrameReader frame(reply);
    EXPECT_EQ(frame.Open(), absl::OkStatus());
    return absl::Status(static_cast<absl::StatusCode>(frame.header().code()), frame.header().message());
  }
  // `part` is 0 for a push of one frame.
  absl::Status Push(LaneSession& session, uint64_t step, uint32_t part = 0, bool more = false, int lane = 0) {
    ps::FrameHeader header;
    header.set_verb(ps::PUSH);
    header.set_step(step);
    header.set_samples(1);
    header.set_part(part);
    header.set_more(more);
    ps::Section* const section = header.add_sections();
    section->set_keys(4);
    section->set_width(kSmallDim);
    base::Key key = 0;
    while (!job_->spec().lanes.Shards(0, lane).Contains(base::ShardOf(key))) ++key;
    const base::Key keys[] = {key, key, key, key};  // of one shard: frames follow one another
    std::string body(reinterpret_cast<const char*>(keys), sizeof keys);
    body.append(4 * kSmallDim * sizeof(float), '\0');
    return Ask(session, header, ++id_, body);
  }
  absl::Status PushDense(LaneSession& session, uint64_t step) {
    ps::FrameHeader header;
    header.set_verb(ps::PUSH_DENSE);
    header.set_step(step);
    header.set_samples(1);
    return Ask(session, header, ++id_, std::string(kDenseBytes, '\0'));
  }
  uint64_t used() const { return job_->push_memory(0)->used(); }

  const Identity kSecond{1, 1, "here"};
  std::unique_ptr<HostedJob> job_ = SmallJob(base::Mode::kSync, 2);
  uint64_t id_ = 0;
};

TEST_F(HeldPushesTest, StepsThatWaitCountUntilTheyAreApplied) {
  job_->LimitPushMemory(2 * kPushBytes + kDenseBytes);
  LaneSession sparse(*job_, kFirstWorker, 0), dense(*job_, kFirstWorker, 1), others(*job_, kSecond, 0);
  EXPECT_EQ(Push(sparse, 0), absl::OkStatus());
  EXPECT_EQ(PushDense(dense, 0), absl::OkStatus());
  EXPECT_EQ(Push(sparse, 1), absl::OkStatus());
  EXPECT_EQ(used(), 2 * kPushBytes + kDenseBytes);
  EXPECT_TRUE(absl::IsResourceExhausted(Push(sparse, 2)));
  EXPECT_TRUE(absl::IsResourceExhausted(PushDense(dense, 1)));
  EXPECT_EQ(Push(others, 0), absl::OkStatus()) << "another worker's";
  EXPECT_EQ(used(), kPushBytes + kDenseBytes);
  EXPECT_EQ(Push(sparse, 2), absl::OkStatus());
}

TEST_F(HeldPushesTest, FramesOfAPushCountUntilItIsDroppedOrItsStreamEnds) {
  job_ = SmallJob(base::Mode::kSync, 2, 1, 2);
  job_->LimitPushMemory(3 * kPushBytes);
  LaneSession other(*job_, kFirstWorker, 1);
  {
    LaneSession session(*job_, kFirstWorker, 0);
    EXPECT_EQ(Push(session, 0, 1, true), absl::OkStatus());
    EXPECT_EQ(Push(session, 0, 2, true), absl::OkStatus());
    EXPECT_EQ(used(), 2 * kPushBytes);
    EXPECT_EQ(Push(other, 1, 1, true, 1), absl::OkStatus());
    EXPECT_TRUE(absl::IsResourceExhausted(Push(other, 1, 2, true, 1)));
    EXPECT_EQ(used(), 2 * kPushBytes) << "a push that was refused is dropped";
    EXPECT_EQ(Push(other, 1, 1, true, 1), absl::OkStatus());
  }
  EXPECT_EQ(used(), kPushBytes) << "the stream has ended";
  EXPECT_TRUE(absl::IsFailedPrecondition(Push(other, 1, 9, true, 1)));
  EXPECT_EQ(used(), 0u);
}

}  // namespace
}  // namespace regatta::server
