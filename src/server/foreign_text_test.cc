// Texts of peers on their way through a server: into its log, into its status, and back to others.
#include <glog/logging.h>
#include <gmock/gmock.h>

#include <thread>

#include "base/mutex.h"
#include "checkpoint/schema_json.h"
#include "server/ps_server.h"
#include "server/status_query.h"
#include "server/status_text.h"
#include "wire/ps.grpc.pb.h"
#include "wire/transport.h"

namespace regatta::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kEvil[] = "host\x1b]0;owned\x07\nE1117 forged line\u202e";
constexpr char kHarmless[] = "host\\x1b]0;owned\\x07\\nE1117 forged line\\u202e";

class Logged : public google::LogSink {
 public:
  Logged() { google::AddLogSink(this); }
  ~Logged() override { google::RemoveLogSink(this); }
  std::string text() {
    base::MutexLock lock(mu_);
    return text_;
  }

 private:
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*, const char* message,
            size_t length) override {
    base::MutexLock lock(mu_);
    text_.append(message, length).append(1, '|');
  }
  base::Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);
};

class ForeignTextTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = PsServer::Start({.listen = {"127.0.0.1:0"}, .workers = 2, .credentials = nullptr});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    waiting_ = std::thread([this] { (void)server_->Wait(); });
    stub_ = ps::ParameterServer::NewStub(wire::MakeChannel(endpoint(), nullptr));
  }
  void TearDown() override {
    server_->Stop();
    waiting_.join();
  }
  std::string endpoint() const { return server_->endpoints().front(); }

  static ps::ConnectRequest Request(uint32_t rank) {
    ps::ConnectRequest request;
    request.set_protocol(wire::kProtocolVersion);
    request.mutable_worker()->set_rank(rank);
    request.mutable_worker()->set_incarnation(rank + 1);
    request.mutable_worker()->set_where(kEvil);
    ps::JobSpec& job = *request.mutable_job();
    job.set_mode("async");
    job.set_workers(2);
    job.set_servers(1);
    job.set_sparse_lanes(1);
    job.set_nan_policy("skip");
    job.set_on_worker_loss("fail");
    table::ModelConfig tables;
    tables.sparse.emplace_back().name = "t";
    tables.sparse.back().dim = 3;
    job.set_tables_json(checkpoint::ToJson(tables).dump());
    return request;
  }
  absl::Status Connect(const ps::ConnectRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    ps::ConnectReply reply;
    return wire::FromGrpc(stub_->Connect(&context, request, &reply));
  }

  Logged logged_;
  std::unique_ptr<PsServer> server_;
  std::thread waiting_;
  std::unique_ptr<ps::ParameterServer::Stub> stub_;
};

bool IsHarmless(const std::string& text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20) return false;
  return text.find("\u202e") == std::string::npos;
}

TEST_F(ForeignTextTest, AWorkersNameIsShownWithoutItsControlCharacters) {
  ASSERT_EQ(Connect(Request(0)), absl::OkStatus());
  const auto answers = AskServers({endpoint()}, std::chrono::seconds(30), nullptr);
  for (const std::string& text : {StatusTable(answers), StatusJson(answers)})
    EXPECT_THAT(text, AllOf(HasSubstr("forged line"), Not(HasSubstr("\x1b")), Not(HasSubstr("\nE1117")),
                            Not(HasSubstr("\u202e"))));
  EXPECT_THAT(StatusTable(answers), HasSubstr(kHarmless));
  EXPECT_THAT(logged_.text(), HasSubstr(kHarmless));
  EXPECT_TRUE(IsHarmless(logged_.text()));
}

TEST_F(ForeignTextTest, AReasonToLeaveIsLoggedWithoutItsControlCharacters) {
  ASSERT_EQ(Connect(Request(0)), absl::OkStatus());
  ps::GoodbyeRequest request;
  *request.mutable_worker() = Request(0).worker();
  request.set_failed(true);
  request.set_reason(kEvil);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  ps::GoodbyeReply reply;
  (void)stub_->Goodbye(&context, request, &reply);
  EXPECT_THAT(logged_.text(), HasSubstr(std::string("gives up: ") + kHarmless));
  EXPECT_TRUE(IsHarmless(logged_.text()));
}

TEST_F(ForeignTextTest, AJobThatIsRefusedIsQuotedWithoutItsControlCharacters) {
  ps::ConnectRequest request = Request(0);
  request.mutable_job()->set_mode(kEvil);
  EXPECT_THAT(std::string(Connect(request).message()), HasSubstr(kHarmless));
  ASSERT_EQ(Connect(Request(0)), absl::OkStatus());
  request = Request(1);
  (*request.mutable_job()->mutable_settings())[kEvil] = kEvil;
  const std::string refused(Connect(request).message());
  EXPECT_THAT(refused, HasSubstr("forged"));
  EXPECT_TRUE(IsHarmless(refused)) << refused;
  EXPECT_TRUE(IsHarmless(logged_.text())) << logged_.text();
}

// What answers at a server's address need not be a server of ours.
TEST(ForeignText, AServersErrorIsReadWithoutItsControlCharacters) {
  const absl::Status status = wire::FromGrpc(grpc::Status(grpc::StatusCode::INTERNAL, kEvil));
  EXPECT_EQ(status.message(), kHarmless);
  ps::StatusReply reply;
  reply.set_mode(kEvil);
  reply.set_workers(1);
  reply.add_tables()->set_name(kEvil);
  ps::WorkerStatus& member = *reply.add_members();
  member.set_state(kEvil);
  member.set_where(kEvil);
  for (const ServerAnswer& answer :
       {ServerAnswer{"127.0.0.1:1", {}, reply}, ServerAnswer{"127.0.0.1:1", absl::UnknownError(kEvil), {}}})
    for (const std::string& text : {StatusTable({answer}), StatusJson({answer})})
      EXPECT_THAT(text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\nE1117")), Not(HasSubstr("\u202e"))));
}

}  // namespace
}  // namespace regatta::server
