#include "client/await_servers.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/match.h"
#include "wire/ps.grpc.pb.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

using std::chrono::milliseconds;

class Regatta final : public ps::ParameterServer::Service {
 public:
  grpc::Status Status(grpc::ServerContext*, const ps::StatusRequest*, ps::StatusReply*) override {
    return grpc::Status::OK;
  }
};

// Speaks gRPC, and none of our verbs.
using Foreign = ps::ParameterServer::Service;

struct Listener {
  explicit Listener(std::unique_ptr<grpc::Service> offered) : service(std::move(offered)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service.get());
    server = builder.BuildAndStart();
    endpoint = absl::StrCat("127.0.0.1:", port);
  }
  const std::unique_ptr<grpc::Service> service;
  std::unique_ptr<grpc::Server> server;
  std::string endpoint;
};

NamedChannel To(const std::string& endpoint) {
  return {endpoint, grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), wire::ClientArguments())};
}

absl::Status Await(const std::string& endpoint, milliseconds timeout) {
  return AwaitServers({To(endpoint)}, timeout, [] { return false; });
}

TEST(AwaitServers, AServerThatAnswersIsThere) {
  const Listener ours(std::make_unique<Regatta>());
  EXPECT_EQ(Await(ours.endpoint, milliseconds(20'000)), absl::OkStatus());
}

TEST(AwaitServers, NobodyIsNamed) {
  std::string endpoint;
  {
    const Listener gone(std::make_unique<Foreign>());
    endpoint = gone.endpoint;
  }
  const absl::Status status = Await(endpoint, milliseconds(700));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("['", endpoint, "']"))) << status;
  EXPECT_FALSE(absl::StrContains(status.message(), "listens something")) << status;
}

TEST(AwaitServers, SomethingElseIsWaitedForAndSaid) {
  const Listener foreign(std::make_unique<Foreign>());
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = Await(foreign.endpoint, milliseconds(700));
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(700));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("at '", foreign.endpoint, "' listens something")))
      << status;
}

TEST(AwaitServers, AStopEndsTheWait) {
  const Listener foreign(std::make_unique<Foreign>());
  EXPECT_TRUE(absl::IsCancelled(AwaitServers({To(foreign.endpoint)}, milliseconds(60'000), [] { return true; })));
}

}  // namespace
}  // namespace regatta::client
