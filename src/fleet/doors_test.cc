// Jobs behind TLS and a token: who is let in, who is not, and that it changes nothing for those who are.
#include <gmock/gmock.h>
#include <grpcpp/impl/codegen/client_unary_call.h>

#include "fleet/testing/run_cluster.h"
#include "fleet/testing/toy_model.h"
#include "server/status_query.h"
#include "server/testing/made_credentials.h"
#include "wire/transport.h"

namespace regatta::fleet {
namespace {

using server::MadeCredentials;
using server::Tokens;
using testing::HasSubstr;
using CredentialsPtr = std::shared_ptr<const cluster::Credentials>;

ToyResult Train(const CredentialsPtr& credentials) {
  ToyResult result;
  ClusterOptions options;
  options.servers = 2;
  options.workers = 2;
  options.worker.mode = Mode::kSync;
  options.worker.tables = ToyTables("adam");
  options.credentials = options.worker.credentials = credentials;
  RunCluster(options, [&](Worker& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    RETURN_IF_ERROR(RunToyPass(*comm, worker.rank(), 0, 0, 20, 1));
    RETURN_IF_ERROR(worker.Barrier("trained"));
    if (worker.first()) {
      ASSIGN_OR_RETURN(result, ReadToy(worker.model()));
    }
    return worker.Barrier("read");
  });
  return result;
}

TEST(Doors, ChangeNothingForThoseWhoAreLetIn) {
  const ToyResult guarded = Train(MadeCredentials()), plain = Train(nullptr);
  ASSERT_FALSE(plain.rows.empty());
  EXPECT_EQ(guarded.rows, plain.rows);
  EXPECT_EQ(guarded.dense, plain.dense);
}

// A server that waits for workers.
struct Guarded {
  explicit Guarded(const CredentialsPtr& credentials) {
    auto started = server::PsServer::Start({.listen = {"127.0.0.1:0"}, .workers = 1, .credentials = credentials});
    CHECK(started.ok()) << started.status();
    server = *std::move(started);
  }
  const std::string& endpoint() const { return server->endpoints().front(); }
  std::unique_ptr<server::PsServer> server;
};

// What a call of `method` ends with, by a channel with `credentials`.
grpc::Status Call(const Guarded& to, const cluster::Credentials* credentials, const std::string& method) {
  const auto channel = wire::MakeChannel(to.endpoint(), credentials);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::ByteBuffer reply;
  return grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
      channel.get(), grpc::internal::RpcMethod(method.c_str(), grpc::internal::RpcMethod::NORMAL_RPC), &context,
      grpc::ByteBuffer(nullptr, 0), &reply);
}

TEST(Doors, EveryVerbNeedsTheToken) {
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

// What a worker that should not get in is told, and that it is told at once.
std::string Refusal(const Guarded& server, const CredentialsPtr& credentials) {
  WorkerOptions options;
  options.servers = {{server.server->endpoints(), {}}};
  options.tables = ToyTables("sgd");
  options.wait_timeout = std::chrono::seconds(60);
  options.credentials = credentials;
  const auto start = std::chrono::steady_clock::now();
  const auto worker = Worker::Start(options);
  EXPECT_FALSE(worker.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  const auto answer = server::AskServers({server.endpoint()}, std::chrono::seconds(10), credentials.get());
  EXPECT_THAT(std::string(worker.status().message()), HasSubstr(std::string(answer[0].status.message())));
  return std::string(worker.status().message());
}

TEST(Doors, AWorkerThatDoesNotFitIsToldWhyAtOnce) {
  const auto credentials = MadeCredentials();
  const Guarded guarded(credentials), open(nullptr);
  auto other_token = std::make_shared<cluster::Credentials>(*credentials);
  other_token->token = std::string(64, 'x');
  EXPECT_THAT(Refusal(guarded, other_token), HasSubstr("does not know this process's token"));
  EXPECT_THAT(Refusal(guarded, MadeCredentials()), HasSubstr("does not hold before tls_ca"));
  auto two_authorities = MadeCredentials();
  two_authorities->ca += credentials->ca;
  EXPECT_THAT(Refusal(guarded, two_authorities), HasSubstr("refuses this process's certificate"));
  EXPECT_THAT(Refusal(guarded, nullptr), HasSubstr("wants TLS"));
  EXPECT_THAT(Refusal(open, credentials), HasSubstr("does not speak TLS"));
}

TEST(Doors, ACertificateForAnotherHostIsNamed) {
  const auto credentials = MadeCredentials();
  auto started = server::PsServer::Start({.listen = {"127.0.0.9:0"}, .workers = 1, .credentials = credentials});
  ASSERT_TRUE(started.ok()) << started.status();
  const auto answers = server::AskServers((*started)->endpoints(), std::chrono::seconds(10), credentials.get());
  EXPECT_THAT(std::string(answers[0].status.message()), HasSubstr("--host 127.0.0.9"));
}

TEST(Doors, ALaneThatSaysNothingIsClosed) {
  const auto credentials = MadeCredentials();
  auto started = server::PsServer::Start({.listen = {"127.0.0.1:0"},
                                          .workers = 1,
                                          .hello_timeout = std::chrono::milliseconds(300),
                                          .credentials = credentials});
  ASSERT_TRUE(started.ok()) << started.status();
  server::PsServer& server = **started;
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

TEST(Doors, WholeTablesNeedTheAdminsToken) {
  const auto credentials = MadeCredentials(Tokens::kAdminToo);
  auto worker_only = std::make_shared<cluster::Credentials>(*credentials);
  worker_only->admin_token.clear();
  for (const CredentialsPtr& mine : {CredentialsPtr(credentials), CredentialsPtr(worker_only)}) {
    ClusterOptions options;
    options.worker.tables = ToyTables("sgd");
    options.credentials = credentials;
    options.worker.credentials = mine;
    RunCluster(options, [&](Worker& worker) -> absl::Status {
      ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
      RETURN_IF_ERROR(RunToyPass(*comm, worker.rank(), 0, 0, 5, 1));
      const absl::Status read = ReadToy(worker.model()).status();
      if (mine->admin_token.empty()) {
        EXPECT_TRUE(absl::IsPermissionDenied(read)) << read;
        EXPECT_THAT(std::string(read.message()), HasSubstr("REGATTA_ADMIN_TOKEN_FILE"));
      } else {
        EXPECT_EQ(read, absl::OkStatus());
      }
      return absl::OkStatus();
    });
  }
}

}  // namespace
}  // namespace regatta::fleet
