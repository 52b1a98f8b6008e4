// Jobs behind TLS and a token: who is let in, who is not, and that it changes nothing for those who are.
#include <gmock/gmock.h>

#include "fleet/testing/run_cluster.h"
#include "fleet/testing/toy_model.h"
#include "server/status_query.h"
#include "server/testing/made_credentials.h"

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
  options.worker.mode = base::Mode::kSync;
  options.worker.tables = ToyTables("adam");
  options.credentials = options.worker.credentials = credentials;
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
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

TEST(GuardedJob, ChangeNothingForThoseWhoAreLetIn) {
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

// How the start of worker 0 ends.
absl::Status Start(const Guarded& server, const CredentialsPtr& credentials) {
  WorkerOptions options;
  options.servers = {{server.server->endpoints(), {}}};
  options.tables = ToyTables("sgd");
  options.wait_timeout = std::chrono::seconds(60);
  options.credentials = credentials;
  return WorkerNode::Start(options).status();
}

// What a worker that should not get in is told, and that it is told at once.
std::string Refusal(const Guarded& server, const CredentialsPtr& credentials) {
  const auto start = std::chrono::steady_clock::now();
  const absl::Status refused = Start(server, credentials);
  EXPECT_FALSE(refused.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  const auto answer = server::AskServers({server.endpoint()}, std::chrono::seconds(10), credentials.get());
  EXPECT_THAT(std::string(refused.message()), HasSubstr(std::string(answer[0].status.message())));
  return std::string(refused.message());
}

TEST(GuardedJob, AWorkerThatDoesNotFitIsToldWhyAtOnce) {
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

TEST(GuardedJob, ACertificateForAnotherHostIsNamed) {
  const auto credentials = MadeCredentials();
  auto started = server::PsServer::Start({.listen = {"127.0.0.9:0"}, .workers = 1, .credentials = credentials});
  ASSERT_TRUE(started.ok()) << started.status();
  const auto answers = server::AskServers((*started)->endpoints(), std::chrono::seconds(10), credentials.get());
  EXPECT_THAT(std::string(answers[0].status.message()), HasSubstr("--host 127.0.0.9"));
}

TEST(GuardedJob, WholeTablesNeedTheAdminsToken) {
  const auto credentials = MadeCredentials(Tokens::kAdminToo);
  auto worker_only = std::make_shared<cluster::Credentials>(*credentials);
  worker_only->admin_token.clear();
  ClusterOptions options;
  options.workers = 2;
  options.worker.tables = ToyTables("sgd");
  options.credentials = options.first_worker = credentials;
  options.worker.credentials = worker_only;
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    RETURN_IF_ERROR(RunToyPass(*comm, worker.rank(), 0, 0, 5, 1));
    RETURN_IF_ERROR(worker.Barrier("trained"));
    const absl::Status read = ReadToy(worker.model()).status();
    if (worker.first()) {
      EXPECT_EQ(read, absl::OkStatus());
    } else {
      EXPECT_TRUE(absl::IsPermissionDenied(read)) << read;
      EXPECT_THAT(std::string(read.message()), HasSubstr("REGATTA_ADMIN_TOKEN_FILE"));
    }
    return worker.Barrier("read");
  });
  const Guarded server(credentials);
  EXPECT_THAT(std::string(Start(server, worker_only).message()), HasSubstr("worker 0 saves and loads"));
}

}  // namespace
}  // namespace regatta::fleet
