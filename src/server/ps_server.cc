#include "server/ps_server.h"

#include <glog/logging.h>
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

constexpr std::chrono::milliseconds kServerPoll(100);
constexpr std::chrono::seconds kAsleep(1);    // this process, when it has not looked for so long
constexpr std::chrono::seconds kFarewell(5);  // that a failed job's workers have to hear why
constexpr std::chrono::seconds kGoodbyes(3);  // that workers have to repeat a goodbye; they try every second

// What peers together may make this process use. A lane holds a thread, and a worker opens kMaxLanes at most.
constexpr size_t kMinTransportBytes = size_t{1} << 30;
constexpr size_t kMaxLanes = 65;  // of a worker; twice as many while it reconnects

void LimitPeers(grpc::ServerBuilder& builder) {
  const size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  grpc::ResourceQuota quota("regatta");
  quota.Resize(std::max(kMinTransportBytes, memory / 4));
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

// Whether a worker is done by the word of an earlier process of this server alone. That one may have been killed before
// it answered: then the worker says goodbye again, and waits long for a server that is not there.
bool MayRepeatGoodbye(const Roster& roster) {
  for (const Member& member : roster.members())
    if (member.state == MemberState::kDone && !member.seen) return true;
  return false;
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

wire::FrontLimits PsServer::FrontLimitsOf(const ServerOptions& options) {
  wire::FrontLimits limits;
  limits.tokens = options.credentials != nullptr;
  const int workers = options.workers;
  if (workers == 0) return limits;
  limits.lanes = std::min(limits.lanes, 2 * LaneRegister::kMostSilent + static_cast<size_t>(workers) * 2 * kMaxLanes);
  limits.gathers = std::min(limits.gathers, (static_cast<size_t>(workers) + 2) * Rendezvous::kMostWaiting);
  return limits;
}

PsServer::~PsServer() { Close(std::chrono::milliseconds(200)); }

void PsServer::Close(std::chrono::milliseconds timeout) {
  listener_.Stop();
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() + timeout);
  front_.Stop();
  acceptor_.reset();
  server_.reset();
}

absl::Status PsServer::Listen() {
  std::vector<int> ports;
  for (const std::string& listen : options_.listen) {
    ASSIGN_OR_RETURN(const int port, listener_.Bind(listen));
    ports.push_back(port);
    endpoints_.push_back(absl::StrCat(HostOf(listen), ":", port));
  }
  grpc::ServerBuilder builder;
  wire::ConfigureServer(builder);
  LimitPeers(builder);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      wire::ServerCredentialsOf(options_.credentials.get()));
  front_.Register(builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::FailedPreconditionError("gRPC cannot start a server");
  front_.Start();
  RETURN_IF_ERROR(listener_.Start(
      [this](int fd) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = fd;
        acceptor_->HandleNewConnection(&connection);
      },
      [this] { return front_.Busy(); }));
  for (size_t i = 0; i < ports.size(); ++i)
    LOG(INFO) << "Server listening on " << endpoints_[i] << " selected port: " << ports[i];
  if (options_.credentials != nullptr)
    LOG(INFO) << "access: TLS and a token" << (options_.credentials->admin_token.empty() ? "" : ", another for admins");
  return absl::OkStatus();
}

absl::Status PsServer::Wait() {
  const absl::Status status = Watch();
  if (!status.ok() && !stop_ && job() != nullptr &&
      service_.Held().ok()) {  // workers that are still there hear it at their next call
    const auto end = std::chrono::steady_clock::now() + kFarewell;
    while (!stop_ && !job()->roster().AllGone() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(kServerPoll);
  }
  Close(std::chrono::seconds(1));
  return status;
}

absl::Status PsServer::Watch() {
  auto looked = std::chrono::steady_clock::now();
  const auto goodbyes = looked + kGoodbyes;
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
    const std::string missing = wait.LineIfDue(looked, hosted == nullptr ? nullptr : &hosted->roster());
    if (!missing.empty()) LOG(WARNING) << missing;
    if (hosted != nullptr) {
      hosted->Sample();
      hosted->ReleaseAbandonedSnapshot();
      Roster& roster = hosted->roster();
      if (asleep > kAsleep) roster.ExtendDeadlines(asleep);
      roster.ExpireSilent(options_.worker_timeout);
      const bool kept = roster.CanGoOnLater();
      const absl::Status failure = roster.failure();
      if (failure.ok() && roster.AllGone() && looked < goodbyes && MayRepeatGoodbye(roster)) {
        std::this_thread::sleep_for(kServerPoll);
        continue;
      }
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
    std::this_thread::sleep_for(kServerPoll);
  }
}

}  // namespace regatta::server
