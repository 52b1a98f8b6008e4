#include "server/status_query.h"

#include <grpcpp/create_channel.h>

#include <thread>

#include "wire/ps.grpc.pb.h"
#include "wire/transport.h"

namespace regatta::server {
namespace {

void Ask(ServerAnswer& answer, std::chrono::duration<double> timeout, std::chrono::system_clock::time_point deadline) {
  grpc::ChannelArguments arguments = wire::ClientArguments();
  // Also the time that a connection may take: one attempt, as long as the user waits.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(timeout.count() * 1000) + 1);
  const auto channel = grpc::CreateCustomChannel(answer.endpoint, grpc::InsecureChannelCredentials(), arguments);
  grpc::ClientContext context;
  context.set_deadline(deadline);
  answer.status =
      wire::FromGrpc(ps::ParameterServer::NewStub(channel)->Status(&context, ps::StatusRequest(), &answer.reply));
  if (absl::IsUnimplemented(answer.status))
    answer.status = absl::UnavailableError("what answers there is no Regatta server");
}

}  // namespace

std::vector<ServerAnswer> AskServers(const std::vector<std::string>& endpoints, std::chrono::duration<double> timeout) {
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
  std::vector<ServerAnswer> answers(endpoints.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    answers[i].endpoint = endpoints[i];
    threads.emplace_back([&answer = answers[i], timeout, deadline] { Ask(answer, timeout, deadline); });
  }
  for (std::thread& thread : threads) thread.join();
  return answers;
}

}  // namespace regatta::server
