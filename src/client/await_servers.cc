#include "client/await_servers.h"

#include <grpcpp/client_context.h>

#include <cstdio>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/grpc_text.h"
#include "wire/handshake.h"
#include "wire/ps.grpc.pb.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

constexpr std::chrono::milliseconds kLogEvery(3000);
constexpr std::chrono::milliseconds kSlice(100);
constexpr std::chrono::milliseconds kProbe(2000);
constexpr std::chrono::milliseconds kExplain(1000);
constexpr std::chrono::milliseconds kExplainEvery(300);

// A connection is not enough: anything may listen there. Every version answers Status.
absl::Status Probe(const NamedChannel& server) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kProbe);
  ps::StatusReply reply;
  return wire::FromGrpc(ps::ParameterServer::NewStub(server.channel)->Status(&context, ps::StatusRequest(), &reply));
}

struct Awaited {
  const NamedChannel& server;
  bool here = false;
  absl::Status refused = absl::OkStatus();  // for good

  std::string Name() const { return absl::StrCat("'", server.endpoint, "'"); }
  bool TryReach() {
    if (here || server.channel->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY) return here;
    const absl::Status probe = Probe(server);
    here = probe.ok();
    if (absl::IsUnauthenticated(probe) || absl::IsPermissionDenied(probe))
      refused = base::Annotate(probe, absl::StrCat("server ", server.endpoint));
    return here;
  }
};

// Asks one of the missing servers after the other what keeps it shut; now and then.
class Explainer {
 public:
  explicit Explainer(const cluster::Credentials* credentials) : credentials_(credentials) {}

  absl::Status ExplainIfDue(const std::vector<Awaited>& all) {
    for (const Awaited& awaited : all) RETURN_IF_ERROR(awaited.refused);
    if (std::chrono::steady_clock::now() < next_) return absl::OkStatus();
    for (size_t tries = 0; tries < all.size(); ++tries) {
      const Awaited& awaited = all[turn_++ % all.size()];
      if (awaited.here || awaited.server.channel->GetState(false) == GRPC_CHANNEL_READY) continue;
      const absl::Status status = wire::ExplainRefusal(awaited.server.endpoint, credentials_, kExplain);
      next_ = std::chrono::steady_clock::now() + kExplainEvery;
      return status;
    }
    return absl::OkStatus();
  }

 private:
  const cluster::Credentials* const credentials_;
  size_t turn_ = 0;
  std::chrono::steady_clock::time_point next_;
};

absl::Status GiveUp(const std::vector<Awaited>& servers, const std::string& list, double seconds) {
  std::string others;
  for (const Awaited& awaited : servers) {
    if (awaited.here) continue;
    const absl::Status probe = Probe(awaited.server);
    if (probe.ok() || SaysNobody(probe)) continue;
    absl::StrAppend(&others, "; at ", awaited.Name(), " listens something that does not answer as a Regatta server (",
                    probe.message(), ")");
  }
  return absl::DeadlineExceededError(
      absl::StrFormat("no answer from the servers %s within %.0f s%s; are they running, and does their list "
                      "(PADDLE_PSERVERS_IP_PORT_LIST) name where they listen? "
                      "(runner.server_wait_timeout, REGATTA_SERVER_WAIT_TIMEOUT)",
                      list, seconds, others));
}

}  // namespace

absl::Status AwaitServers(const std::vector<NamedChannel>& servers, std::chrono::duration<double> timeout,
                          const std::function<bool()>& cancelled, const cluster::Credentials* credentials) {
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
  auto say = start + std::chrono::milliseconds(500);  // a server that is about to come is not worth a line
  std::vector<Awaited> all;
  for (const NamedChannel& server : servers) all.push_back({server});
  Explainer explainer(credentials);
  while (true) {
    std::vector<std::string> missing;
    const Awaited* first = nullptr;
    for (Awaited& awaited : all) {
      if (awaited.TryReach()) continue;
      missing.push_back(awaited.Name());
      if (first == nullptr) first = &awaited;
    }
    if (missing.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(explainer.ExplainIfDue(all));
    if (cancelled()) return absl::CancelledError("stopped while waiting for the servers");
    const auto now = std::chrono::steady_clock::now();
    const std::string list = absl::StrCat("[", absl::StrJoin(missing, ", "), "]");
    if (now >= end) return GiveUp(all, list, timeout.count());
    if (now >= say) {
      std::fprintf(stderr, "server not ready, wait 3 sec to retry...\nnot ready endpoints:%s\n", list.c_str());
      std::fflush(stderr);
      say = now + kLogEvery;
    }
    if (first->server.channel->GetState(true) == GRPC_CHANNEL_READY)
      std::this_thread::sleep_for(kSlice);  // somebody else is there
    else
      first->server.channel->WaitForConnected(std::chrono::system_clock::now() + kSlice);
  }
}

}  // namespace regatta::client
