#include "server/ps_server.h"

#include <glog/logging.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "server/worker_wait.h"
#include "wire/certificate.h"
#include "wire/transport.h"

namespace regatta::server {
namespace {

constexpr std::chrono::milliseconds kServerLook(100);
constexpr std::chrono::seconds kAsleep(1);    // this process, when it has not looked for so long
constexpr std::chrono::seconds kFarewell(5);  // that a failed job's workers have to hear why

// What peers together may make this process use. A lane holds a thread, and a worker opens kMaxLanes at most.
constexpr size_t kMinTransportBytes = size_t{1} << 30;
constexpr int kMaxLanes = 65, kOtherCalls = 7;  // of a worker
constexpr int kSpareThreads = 256;              // pollers, Status, strangers
constexpr int kMaxThreads = 32'768;

void LimitPeers(grpc::ServerBuilder& builder, int workers) {
  const size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int64_t threads = kSpareThreads + int64_t{workers} * (kMaxLanes + kOtherCalls);
  grpc::ResourceQuota quota("regatta");
  quota.Resize(std::max(kMinTransportBytes, memory / 4));
  quota.SetMaxThreads(workers == 0 ? kMaxThreads : static_cast<int>(std::min<int64_t>(threads, kMaxThreads)));
  builder.SetResourceQuota(quota);
}

// Of a server that knows its place: the folder's may be another's.
absl::Status CheckPlace(const Journal& journal, const std::optional<ServerPlace>& place) {
  if (!place.has_value() || journal.entries().empty()) return absl::OkStatus();
  const uint32_t server = journal.entries().front().job().server();
  if (server == static_cast<uint32_t>(place->server)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(journal.data_dir(), " is the data_dir of server ", server,
                                                    " of a job, and this is server ", place->server,
                                                    "; start every server on the data_dir that it had"));
}

std::string HostOf(const std::string& endpoint) { return endpoint.substr(0, endpoint.rfind(':')); }

}  // namespace

absl::StatusOr<std::unique_ptr<PsServer>> PsServer::Start(const ServerOptions& options) {
  if (options.credentials != nullptr) RETURN_IF_ERROR(wire::CheckCertificate(*options.credentials));
  std::unique_ptr<Journal> journal;
  if (!options.data_dir.empty()) {
    ASSIGN_OR_RETURN(journal, Journal::Open(options.data_dir, options.lease, options.since));
    if (journal->ended()) {
      LOG(INFO) << "the job in " << options.data_dir << " is done";
      return nullptr;
    }
    RETURN_IF_ERROR(CheckPlace(*journal, options.place));
  }
  const bool returns = journal != nullptr && !journal->entries().empty();
  std::unique_ptr<PsServer> server(new PsServer(options, std::move(journal)));
  const absl::Status recovered = server->service_.Recover();
  RETURN_IF_ERROR(server->service_.Held());  // what is missing then is the successor's
  RETURN_IF_ERROR(recovered);
  if (!returns && !options.load.empty())
    RETURN_IF_ERROR(options.place.has_value() ? server->service_.LoadNow(*options.place)
                                              : TableShare::CheckSave(options.load));
  RETURN_IF_ERROR(server->Listen());
  return server;
}

PsServer::~PsServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
}

absl::Status PsServer::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  wire::ConfigureServer(builder);
  LimitPeers(builder, options_.workers);
  std::vector<int> ports(options_.listen.size(), 0);
  for (size_t i = 0; i < ports.size(); ++i)
    builder.AddListeningPort(options_.listen[i], wire::ServerCredentialsOf(options_.credentials.get()), &ports[i]);
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    if (server_ != nullptr && ports[i] != 0) {
      endpoints_.push_back(absl::StrCat(HostOf(options_.listen[i]), ":", ports[i]));
      continue;
    }
    if (ports[i] != 0) continue;  // another port is at fault
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", options_.listen[i],
                                                      ": the port is in use, or the address is not this machine's"));
  }
  if (server_ == nullptr) return absl::FailedPreconditionError("gRPC cannot start a server");
  for (size_t i = 0; i < ports.size(); ++i)
    LOG(INFO) << "Server listening on " << endpoints_[i] << " selected port: " << ports[i];
  if (options_.credentials != nullptr)
    LOG(INFO) << "doors: TLS and a token" << (options_.credentials->admin_token.empty() ? "" : ", another for admins");
  return absl::OkStatus();
}

absl::Status PsServer::Wait() {
  const absl::Status status = Watch();
  if (!status.ok() && !stop_ && job() != nullptr &&
      service_.Held().ok()) {  // workers that are still there hear it at their next call
    const auto end = std::chrono::steady_clock::now() + kFarewell;
    while (!stop_ && !job()->roster().AllGone() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(kServerLook);
  }
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return status;
}

absl::Status PsServer::Watch() {
  auto looked = std::chrono::steady_clock::now();
  WorkerWait wait(options_.workers, options_.quiet_wait, looked);
  while (true) {
    if (stop_) return absl::CancelledError("stopped");
    if (const absl::Status held = service_.Held(); !held.ok()) {
      if (job() != nullptr) job()->roster().Fail(held);  // who waits for something here waits no longer
      return held;
    }
    service_.CancelSilentLanes();
    const auto asleep = std::chrono::steady_clock::now() - std::exchange(looked, std::chrono::steady_clock::now());
    HostedJob* const hosted = job();
    const std::string missing = wait.Say(looked, hosted == nullptr ? nullptr : &hosted->roster());
    if (!missing.empty()) LOG(WARNING) << missing;
    if (hosted != nullptr) {
      hosted->Sample();
      hosted->LookAtCut();
      Roster& roster = hosted->roster();
      if (asleep > kAsleep) roster.Excuse(asleep);
      roster.LoseSilent(options_.worker_timeout);
      const bool kept = roster.CanGoOnLater();
      const absl::Status failure = roster.failure();
      const bool over = !failure.ok() || roster.AllGone();
      if (over) service_.Finish(kept ? JobEnd::kKept : JobEnd::kForgotten);
      if (over && kept)
        return absl::AbortedError(absl::StrCat(failure.ok() ? "the workers gave up" : failure.message(),
                                               "; what they were acknowledged stays in ", options_.data_dir,
                                               ", and the job goes on when all are started again"));
      RETURN_IF_ERROR(failure);
      if (over) {
        LOG(INFO) << "all workers are done: " << hosted->rows() << " rows, " << hosted->traffic().pushes.value()
                  << " pushes";
        return absl::OkStatus();
      }
    }
    std::this_thread::sleep_for(kServerLook);
  }
}

}  // namespace regatta::server
