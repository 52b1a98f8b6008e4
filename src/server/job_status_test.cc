// What a server tells of its job: counted by requests, read by the Status verb, by Prometheus and by people.
#include "server/job_status.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "base/grouped_keys.h"
#include "server/job_metrics.h"
#include "server/lane_session.h"
#include "server/status_text.h"
#include "server/testing/small_job.h"

namespace regatta::server {
namespace {

class JobStatusTest : public testing::Test {
 protected:
  // The reply's header.
  ps::FrameHeader Ask(LaneSession& session, ps::Verb verb, uint64_t step) {
    ps::FrameHeader header;
    header.set_verb(verb);
    header.set_id(++id_);
    header.set_step(step);
    header.set_samples(1);
    ps::Section* section = header.add_sections();
    section->set_table(0);
    section->set_keys(4);
    section->set_width(kSmallDim);
    const std::vector<float> rows(verb == ps::PUSH ? 4 * kSmallDim : 0, 1.0f);
    wire::FrameWriter writer(header, 4 * sizeof(base::Key) + rows.size() * sizeof(float));
    writer.Append(keys_.keys().data(), 4 * sizeof(base::Key));
    writer.Append(rows.data(), rows.size() * sizeof(float));
    grpc::ByteBuffer request = writer.Finish();
    grpc::ByteBuffer reply = session.Answer(request);
    wire::FrameReader frame(reply);
    EXPECT_EQ(frame.Open(), absl::OkStatus());
    EXPECT_EQ(frame.header().code(), 0) << frame.header().message();
    return frame.header();
  }
  ps::StatusReply Status() const {
    ps::StatusReply reply;
    FillStatus(*job_, reply);
    return reply;
  }

  std::unique_ptr<HostedJob> job_ = SmallJob(base::Mode::kAsync, 2);
  const base::GroupedKeys keys_{{1, 2, 3, 4}};
  uint64_t id_ = 0;
};

TEST_F(JobStatusTest, StalenessIsTheUpdatesSinceThePull) {
  const Identity second{1, 2, "there"};
  ASSERT_EQ(job_->roster().Join(second).status(), absl::OkStatus());
  LaneSession mine(*job_, kFirstWorker, 0), other(*job_, second, 0);
  EXPECT_EQ(Ask(mine, ps::PUSH, 9).count(), 0u);  // never pulled: not measured
  Ask(mine, ps::PULL, 10);
  EXPECT_EQ(Ask(mine, ps::PUSH, 10).count(), 1u + 0);
  Ask(mine, ps::PULL, 11);
  Ask(mine, ps::PULL, 12);
  Ask(other, ps::PULL, 11);
  EXPECT_EQ(Ask(mine, ps::PUSH, 11).count(), 1u + 0);
  EXPECT_EQ(Ask(other, ps::PUSH, 11).count(), 1u + 1);  // worker 0's step 11 came between
  EXPECT_EQ(Ask(mine, ps::PUSH, 12).count(), 1u + 2);   // its own step 11 and worker 1's
  EXPECT_EQ(Ask(mine, ps::PUSH, 12).count(), 0u);       // that pull is used up
  const ps::StatusReply status = Status();
  EXPECT_DOUBLE_EQ(status.staleness(), 3.0 / 4);
  EXPECT_EQ(status.staleness_max(), 2u);
}

TEST_F(JobStatusTest, CountsWhatWasAsked) {
  LaneSession session(*job_, kFirstWorker, 0);
  for (uint64_t step = 0; step < 3; ++step) {
    Ask(session, ps::PULL, step);
    Ask(session, ps::PUSH, step);
  }
  const ps::StatusReply status = Status();
  EXPECT_EQ(status.mode(), "async");
  EXPECT_EQ(status.pulls(), 3u);
  EXPECT_EQ(status.pushes(), 3u);
  EXPECT_EQ(status.keys_pulled(), 12u);
  EXPECT_EQ(status.keys_pushed(), 12u);
  EXPECT_EQ(status.tables(0).rows(), 4u);
  EXPECT_EQ(status.dense_parameters(), 5u);
  ASSERT_EQ(status.members_size(), 2);
  EXPECT_EQ(status.members(0).state(), "here");
  EXPECT_EQ(status.members(1).state(), "awaited");
  EXPECT_GE(status.shard_skew(), 1024.0 / 4);  // four keys in four of 1024 shards, or fewer
  metrics::Exposition out;
  CollectJob(*job_, out);
  for (const char* line :
       {"regatta_table_rows{table=\"t\"} 4\n", "regatta_server_requests_total{verb=\"pull\"} 3\n",
        "regatta_server_request_seconds_count{verb=\"push\"} 3\n", "regatta_server_keys_total{verb=\"pull\"} 12\n",
        "regatta_server_lane_keys_total{lane=\"0\"} 24\n", "regatta_server_staleness_updates_count 3\n",
        "regatta_server_workers{state=\"awaited\"} 1\n", "regatta_server_worker_steps{worker=\"0\"} 0\n"})
    EXPECT_TRUE(absl::StrContains(out.Text(), line)) << line << out.Text();
}

TEST_F(JobStatusTest, TheTableIsAligned) {
  ServerAnswer here{"127.0.0.1:36200", {}, Status()};
  here.reply.set_uptime(3725);
  here.reply.mutable_members(0)->mutable_progress()->set_samples(12'345);
  const ServerAnswer gone{"127.0.0.1:36201", absl::UnavailableError("Connection refused"), {}};
  ServerAnswer early{"127.0.0.1:36202", {}, {}};
  const std::string text = StatusTable({here, gone, early});
  EXPECT_TRUE(absl::StrContains(text, "SERVER  ENDPOINT         MODE   UP")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\n0       127.0.0.1:36200  async  1:02:05  ")) << text;
  EXPECT_TRUE(absl::StrContains(text, "server 127.0.0.1:36201: no answer: Connection refused\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "server 127.0.0.1:36202: up for 0:00, no worker has come yet\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\n0       here     here")) << text;
  EXPECT_TRUE(absl::StrContains(text, "12345")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\n1       awaited  -\n")) << text;
  const std::string json = StatusJson({here, gone});
  EXPECT_TRUE(absl::StrContains(json, "\"error\": \"Connection refused\"")) << json;
}

}  // namespace
}  // namespace regatta::server
