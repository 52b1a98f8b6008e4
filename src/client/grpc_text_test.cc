// The words of the gRPC that is linked, not of a copy here.
#include "client/grpc_text.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "wire/ps.grpc.pb.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

absl::Status Ask(const std::string& endpoint) {
  const auto channel = grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), wire::ClientArguments());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  ps::StatusReply reply;
  return wire::FromGrpc(ps::ParameterServer::NewStub(channel)->Status(&context, ps::StatusRequest(), &reply));
}

struct GrpcListener {
  GrpcListener() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    endpoint = absl::StrCat("127.0.0.1:", port);
  }
  ps::ParameterServer::Service service;  // answers UNIMPLEMENTED
  std::unique_ptr<grpc::Server> server;
  std::string endpoint;
};

TEST(GrpcText, APortThatNobodyListensOnIsRefused) {
  std::string endpoint;
  {
    const GrpcListener gone;
    endpoint = gone.endpoint;
  }
  const absl::Status status = Ask(endpoint);
  EXPECT_TRUE(SaysRefused(status)) << status;
  EXPECT_TRUE(SaysNobody(status)) << status;
}

TEST(GrpcText, ANameThatDoesNotExistIsNobodyAndNotRefused) {
  const absl::Status status = Ask("no-such-host.invalid:1");
  EXPECT_FALSE(SaysRefused(status)) << status;
  EXPECT_TRUE(SaysNobody(status)) << status;
}

TEST(GrpcText, SomebodyElseWhoAnswersIsNotNobody) {
  const GrpcListener foreign;
  const absl::Status status = Ask(foreign.endpoint);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(SaysRefused(status)) << status;
  EXPECT_FALSE(SaysNobody(status)) << status;
}

// A server whose calls wait until they are cancelled.
struct Waiting : ps::ParameterServer::Service {
  grpc::Status Status(grpc::ServerContext* context, const ps::StatusRequest*, ps::StatusReply*) override {
    serving = true;
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return grpc::Status::OK;
  }
  std::atomic<bool> serving{false};
};

TEST(GrpcText, ACallOfAServerThatEndsIsCutOff) {
  Waiting service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::thread ends([&] {
    while (!service.serving) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server->Shutdown(std::chrono::system_clock::now());
  });
  const absl::Status status = Ask(absl::StrCat("127.0.0.1:", port));
  ends.join();
  EXPECT_TRUE(SaysCutOff(status) || absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(SaysCutOff(absl::CancelledError("the job was stopped")));
}

}  // namespace
}  // namespace regatta::client
