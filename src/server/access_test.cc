// What a server with credentials lets in, and what it says while nobody comes.
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include <thread>

#include "absl/strings/match.h"
#include "base/mutex.h"
#include "server/ps_server.h"
#include "server/testing/made_credentials.h"
#include "wire/transport.h"

namespace regatta::server {
namespace {

using testing::HasSubstr;
using CredentialsPtr = std::shared_ptr<const cluster::Credentials>;

// A server that waits for workers.
struct Guarded {
  explicit Guarded(const CredentialsPtr& credentials) {
    auto started = PsServer::Start({.listen = {"127.0.0.1:0"}, .workers = 1, .credentials = credentials});
    CHECK(started.ok()) << started.status();
    server = *std::move(started);
  }
  const std::string& endpoint() const { return server->endpoints().front(); }
  std::unique_ptr<PsServer> server;
};

// What a call of `method` ends with, by a channel with `credentials`.
grpc::Status Call(const Guarded& to, const cluster::Credentials* credentials, const std::string& method) {
  const auto channel = wire::MakeChannel(to.endpoint(), credentials);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const grpc::ByteBuffer nothing(nullptr, 0);
  const auto call = stub.PrepareUnaryCall(&context, method, nothing, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

TEST(Access, EveryVerbNeedsTheToken) {
  const auto credentials = MadeCredentials(Tokens::kAdminToo);
  const Guarded server(credentials);
  auto stranger = *credentials;
  stranger.token = std::string(64, 'x');
  stranger.admin_token.clear();
  const auto* service = ps::StatusRequest::descriptor()->file()->service(0);
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string method = "/" + service->full_name() + "/" + service->method(i)->name();
    const grpc::Status refused = Call(server, &stranger, method);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method << ": " << refused.error_message();
    EXPECT_THAT(refused.error_message(), HasSubstr("REGATTA_TOKEN_FILE"));
    EXPECT_NE(Call(server, credentials.get(), method).error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
  }
  // No verb of ours: whether it serves is for probes to ask, who have a certificate and no token.
  EXPECT_TRUE(Call(server, &stranger, "/grpc.health.v1.Health/Check").ok());
}

TEST(Access, ALaneThatSaysNothingIsClosed) {
  const auto credentials = MadeCredentials();
  auto started = PsServer::Start({.listen = {"127.0.0.1:0"},
                                  .workers = 1,
                                  .hello_timeout = std::chrono::milliseconds(300),
                                  .credentials = credentials});
  ASSERT_TRUE(started.ok()) << started.status();
  PsServer& server = **started;
  std::thread waiting([&server] { EXPECT_TRUE(absl::IsCancelled(server.Wait())); });
  const auto channel = wire::MakeChannel(server.endpoints().front(), credentials.get());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto lane = wire::OpenLane(channel, &context);
  grpc::ByteBuffer reply;
  EXPECT_FALSE(lane->Read(&reply));
  EXPECT_EQ(lane->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server.Stop();
  waiting.join();
}

// Every line that is logged while it lives.
class LoggedLines : public google::LogSink {
 public:
  LoggedLines() { google::AddLogSink(this); }
  ~LoggedLines() override { google::RemoveLogSink(this); }
  // Whether `text` has been logged within ten seconds.
  bool Await(const std::string& text) {
    base::MutexLock lock(mu_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!absl::StrContains(lines_, text) && std::chrono::steady_clock::now() < end)
      changed_.WaitFor(mu_, std::chrono::milliseconds(100));
    return absl::StrContains(lines_, text);
  }

 private:
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*, const char* message,
            size_t length) override {
    base::MutexLock lock(mu_);
    absl::StrAppend(&lines_, absl::string_view(message, length), "\n");
    changed_.NotifyAll();
  }
  base::Mutex mu_;
  base::CondVar changed_;
  std::string lines_ ABSL_GUARDED_BY(mu_);
};

TEST(Access, AServerToWhomNobodyComesSaysWhoIsMissing) {
  LoggedLines logged;
  auto started = PsServer::Start(
      {.listen = {"127.0.0.1:0"}, .workers = 2, .quiet_wait = std::chrono::milliseconds(100), .credentials = nullptr});
  ASSERT_TRUE(started.ok()) << started.status();
  PsServer& server = **started;
  std::thread waiting([&server] { EXPECT_TRUE(absl::IsCancelled(server.Wait())); });
  EXPECT_TRUE(logged.Await(" s for worker 0 (not here yet), worker 1 (not here yet);"));
  server.Stop();
  waiting.join();
}

}  // namespace
}  // namespace regatta::server
