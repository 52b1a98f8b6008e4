#include "client/await_servers.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace regatta::client {
namespace {

constexpr std::chrono::milliseconds kRetry(3000);
constexpr std::chrono::milliseconds kSlice(100);

}  // namespace

absl::Status AwaitServers(const std::vector<NamedChannel>& servers, std::chrono::duration<double> timeout,
                          const std::function<bool()>& cancelled) {
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
  auto say = start + std::chrono::milliseconds(500);  // a server that is about to come is not worth a line
  while (true) {
    std::vector<std::string> missing;
    for (const NamedChannel& server : servers)
      if (server.channel->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY)
        missing.push_back(absl::StrCat("'", server.endpoint, "'"));
    if (missing.empty()) return absl::OkStatus();
    if (cancelled()) return absl::CancelledError("stopped while waiting for the servers");
    const auto now = std::chrono::steady_clock::now();
    const std::string list = absl::StrCat("[", absl::StrJoin(missing, ", "), "]");
    if (now >= end)
      return absl::DeadlineExceededError(
          absl::StrFormat("no answer from the servers %s within %.0f s; are they running, and does their list "
                          "(PADDLE_PSERVERS_IP_PORT_LIST) name where they listen? "
                          "(runner.server_wait_timeout, REGATTA_SERVER_WAIT_TIMEOUT)",
                          list, timeout.count()));
    if (now >= say) {
      std::fprintf(stderr, "server not ready, wait 3 sec to retry...\nnot ready endpoints:%s\n", list.c_str());
      std::fflush(stderr);
      say = now + kRetry;
    }
    for (const NamedChannel& server : servers) {
      if (server.channel->GetState(true) == GRPC_CHANNEL_READY) continue;
      server.channel->WaitForConnected(std::chrono::system_clock::now() + kSlice);
      break;
    }
  }
}

}  // namespace regatta::client
