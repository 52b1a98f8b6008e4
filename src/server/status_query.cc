#include "server/status_query.h"

#include <thread>

#include "wire/handshake.h"
#include "wire/ps.grpc.pb.h"
#include "wire/transport.h"

namespace regatta::server {
namespace {

constexpr std::chrono::milliseconds kExplain(1000);

void Ask(ServerAnswer& answer, std::chrono::duration<double> timeout, std::chrono::system_clock::time_point deadline,
         const cluster::Credentials* credentials) {
  grpc::ChannelArguments arguments = wire::ClientArguments();
  // Also the time that a connection may take: one attempt, as long as the user waits.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(timeout.count() * 1000) + 1);
  const auto channel = wire::MakeChannel(answer.endpoint, credentials, arguments);
  grpc::ClientContext context;
  context.set_deadline(deadline);
  answer.status =
      wire::FromGrpc(ps::ParameterServer::NewStub(channel)->Status(&context, ps::StatusRequest(), &answer.reply));
  if (absl::IsUnimplemented(answer.status))
    answer.status = absl::UnavailableError("what answers there is no Regatta server");
  if (absl::IsUnavailable(answer.status) || absl::IsDeadlineExceeded(answer.status)) {
    const absl::Status why = wire::ExplainRefusal(answer.endpoint, credentials, kExplain);
    if (!why.ok()) answer.status = why;
  }
}

}  // namespace

std::vector<ServerAnswer> AskServers(const std::vector<std::string>& endpoints, std::chrono::duration<double> timeout,
                                     const cluster::Credentials* credentials) {
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
  std::vector<ServerAnswer> answers(endpoints.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    answers[i].endpoint = endpoints[i];
    threads.emplace_back(
        [&answer = answers[i], timeout, deadline, credentials] { Ask(answer, timeout, deadline, credentials); });
  }
  for (std::thread& thread : threads) thread.join();
  return answers;
}

}  // namespace regatta::server
