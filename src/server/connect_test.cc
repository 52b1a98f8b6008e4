// Who may make a job, and what a refused Connect leaves behind: nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/test_folder.h"
#include "server/ps_service.h"
#include "server/testing/golden_job.h"

namespace regatta::server {
namespace {

using testing::HasSubstr;

class ConnectTest : public testing::Test {
 protected:
  struct Answer {
    grpc::StatusCode code;
    std::string message;
    std::string wait;
  };
  Answer Connect(const ps::ConnectRequest& request) {
    grpc::ServerContext context;
    ps::ConnectReply reply;
    const grpc::Status status = service_->Connect(&context, &request, &reply);
    return {status.error_code(), status.error_message(), reply.wait()};
  }
  static ps::ConnectRequest Request(uint32_t rank) {
    ps::ConnectRequest request = GoldenRequest(base::Mode::kAsync);
    request.mutable_worker()->set_rank(rank);
    request.mutable_worker()->set_incarnation(7 + rank);
    request.mutable_worker()->set_where("here");
    return request;
  }
  // The server ends, and is started on the same data_dir.
  void Restart() {
    service_.reset();
    journal_.reset();
    Start();
  }
  void Start() {
    journal_ = Journal::Open(folder_.path()).value();
    service_ = std::make_unique<PsService>(ServiceOptions(), journal_.get());
    EXPECT_EQ(service_->Recover(), absl::OkStatus());
  }
  void SetUp() override { Start(); }
  void TearDown() override {
    if (service_ != nullptr) service_->Finish(JobEnd::kKept);
  }

  base::TestFolder folder_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<PsService> service_;
};

TEST_F(ConnectTest, WorkerZeroMakesTheJobAndTheOthersWaitForIt) {
  const Answer early = Connect(Request(1));
  EXPECT_EQ(early.code, grpc::StatusCode::OK) << early.message;
  EXPECT_THAT(early.wait, HasSubstr("worker 0 brings the job"));
  EXPECT_EQ(service_->job(), nullptr);
  EXPECT_EQ(Connect(Request(0)).wait, "");
  ASSERT_NE(service_->job(), nullptr);
  EXPECT_EQ(Connect(Request(1)).wait, "");
}

// Each of these once made the job, in memory and in the data_dir, and honest workers were refused from then on.
TEST_F(ConnectTest, ARefusedConnectMakesNoJob) {
  ps::ConnectRequest outside = Request(2);
  outside.mutable_job()->set_mode("sync");
  ps::ConnectRequest nobody = Request(0);
  nobody.mutable_worker()->set_incarnation(0);
  ps::ConnectRequest elsewhere = Request(0);
  elsewhere.set_server(1);
  ps::ConnectRequest nonsense = Request(0);
  nonsense.mutable_job()->set_tables_json("{\"sparse\": 7}");
  ps::ConnectRequest old = Request(0);
  old.set_protocol(3);
  for (const ps::ConnectRequest& request : {outside, nobody, elsewhere, nonsense, old}) {
    const Answer answer = Connect(request);
    EXPECT_TRUE(answer.code != grpc::StatusCode::OK || !answer.wait.empty()) << request.ShortDebugString();
    EXPECT_EQ(service_->job(), nullptr);
    Restart();
    EXPECT_EQ(service_->job(), nullptr) << "in the data_dir, too";
  }
  EXPECT_EQ(Connect(Request(0)).code, grpc::StatusCode::OK);
  const Answer stranger = Connect(Request(9));
  EXPECT_THAT(stranger.message, HasSubstr("worker 9 is not one of 2"));
}

TEST_F(ConnectTest, ALivingWorkerIsNotReplaced) {
  EXPECT_EQ(Connect(Request(0)).wait, "");
  EXPECT_EQ(Connect(Request(1)).wait, "");
  ps::ConnectRequest second = Request(1);
  second.mutable_worker()->set_incarnation(99);
  EXPECT_THAT(Connect(second).wait, HasSubstr("worker 1 (here, last heard"));
  service_->job()->roster().Lose(1, "test");
  EXPECT_EQ(Connect(second).wait, "");
}

}  // namespace
}  // namespace regatta::server
