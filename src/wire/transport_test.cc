// What both ends do with compressed messages: nothing is decompressed, because the limit of a message's size would
// apply to the result only.
#include "wire/transport.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "wire/ps.grpc.pb.h"

namespace regatta::wire {
namespace {

// Counts its calls, and compresses its replies if it is told to.
class Service final : public ps::ParameterServer::Service {
 public:
  explicit Service(grpc_compression_algorithm replies) : replies_(replies) {}
  grpc::Status Status(grpc::ServerContext* context, const ps::StatusRequest*, ps::StatusReply* reply) override {
    context->set_compression_algorithm(replies_);
    reply->set_mode(std::string(100'000, 'x'));
    return grpc::Status::OK;
  }
  grpc::Status Goodbye(grpc::ServerContext*, const ps::GoodbyeRequest*, ps::GoodbyeReply*) override {
    ++served;
    return grpc::Status::OK;
  }
  std::atomic<int> served = 0;

 private:
  const grpc_compression_algorithm replies_;
};

enum class Settings { kOurs, kGrpcs };

struct Listening {
  Listening(Service& service, Settings settings) {
    grpc::ServerBuilder builder;
    if (settings == Settings::kOurs) ConfigureServer(builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    endpoint = "127.0.0.1:" + std::to_string(port);
  }
  std::string endpoint;
  std::unique_ptr<grpc::Server> server;
};

grpc::Status SayGoodbye(const std::string& endpoint, grpc_compression_algorithm algorithm) {
  const auto channel = grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.set_compression_algorithm(algorithm);
  ps::GoodbyeRequest request;
  request.set_reason(std::string(100'000, 'x'));
  ps::GoodbyeReply reply;
  return ps::ParameterServer::NewStub(channel)->Goodbye(&context, request, &reply);
}

TEST(Transport, AServerRefusesCompressedRequests) {
  Service service(GRPC_COMPRESS_NONE);
  const Listening listening(service, Settings::kOurs);
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    const grpc::Status refused = SayGoodbye(listening.endpoint, algorithm);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED) << refused.error_message();
  }
  EXPECT_EQ(service.served, 0);
  EXPECT_TRUE(SayGoodbye(listening.endpoint, GRPC_COMPRESS_NONE).ok());
  EXPECT_EQ(service.served, 1);
}

TEST(Transport, AClientRefusesCompressedReplies) {
  for (const auto algorithm : {GRPC_COMPRESS_NONE, GRPC_COMPRESS_GZIP}) {
    Service service(algorithm);
    const Listening listening(service, Settings::kGrpcs);
    const auto stub = ps::ParameterServer::NewStub(MakeChannel(listening.endpoint, nullptr));
    grpc::ClientContext context;
    ps::StatusReply reply;
    const grpc::Status status = stub->Status(&context, {}, &reply);
    EXPECT_EQ(status.ok(), algorithm == GRPC_COMPRESS_NONE) << status.error_message();
  }
}

}  // namespace
}  // namespace regatta::wire
