// A parameter server: listens, serves one job, ends when its workers are done.
// Thread-safety: Wait is for one thread; Stop may come from any.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/ps_service.h"
#include "wire/call_front.h"
#include "wire/connections.h"
#include "wire/listener.h"

namespace regatta::server {

struct ServerOptions {
  std::vector<std::string> listen;  // host:port each; port 0 = any free one
  int workers = 0;                  // that must take part; 0 = as many as the first one says
  std::string load = {};            // a save to start from; "" = none
  std::string data_dir = {};        // where it logs what it acknowledges; "" = nowhere
  LeaseOptions lease = {};          // of it
  double since = Journal::kAlways;  // a job in it that has ended since then (seconds since 1970) is not begun anew
  CompactorOptions compactor = {};
  uint64_t push_memory = PushMemory::kDefaultLimit;     // bytes of a worker's pushes that wait to be applied
  std::optional<ServerPlace> place = {};                // where it is known before workers come: loads at the start
  std::chrono::duration<double> worker_timeout{10};     // of silence, after which a worker is lost
  std::chrono::duration<double> lives{Roster::kLives};  // a worker that was heard: no other takes its place
  std::chrono::duration<double> quiet_wait{30};         // for workers, before it says who has not come
  std::chrono::duration<double> hello_timeout{10};      // of a lane that was opened and has not said who it is
  std::shared_ptr<const cluster::Credentials> credentials = nullptr;  // null: no TLS, and everybody may call
};

class PsServer {
 public:
  // Loads, or goes on with the job in data_dir, then listens; null where that job is done and nothing is to be served.
  // FAILED_PRECONDITION names the endpoint that cannot be listened on, or the server that has data_dir or had it.
  static absl::StatusOr<std::unique_ptr<PsServer>> Start(const ServerOptions& options);
  ~PsServer();

  const std::vector<std::string>& endpoints() const { return endpoints_; }  // as bound
  // Returns when all workers are done (OK), the job failed, another server has taken data_dir over (UNAVAILABLE), or
  // Stop was called (CANCELLED).
  absl::Status Wait();
  void Stop() { stop_ = true; }  // async-signal-safe
  HostedJob* job() const { return service_.job(); }
  // For --metrics_port. Concurrent.
  void Collect(metrics::Exposition& out) const { service_.Collect(out); }

 private:
  PsServer(const ServerOptions& options, std::unique_ptr<Journal> journal)
      : options_(options),
        journal_(std::move(journal)),
        service_({options.workers, options.place.has_value() ? options.place->servers : 0, options.load,
                  options.compactor, options.credentials, options.lives, options.hello_timeout, options.push_memory},
                 journal_.get()),
        front_(service_, connections_, FrontLimitsOf(options)) {}
  static wire::FrontLimits FrontLimitsOf(const ServerOptions& options);
  absl::Status Listen();
  // Takes no more calls, and cancels those that have not ended within `timeout`.
  void Close(std::chrono::milliseconds timeout);
  absl::Status Watch();

  const ServerOptions options_;
  const std::unique_ptr<Journal> journal_;
  PsService service_;
  std::vector<std::string> endpoints_;
  wire::Connections connections_{wire::ConnectionLimits::Within(wire::Listener::MostConnections())};
  wire::CallFront front_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  wire::Listener listener_{connections_};
  std::atomic<bool> stop_{false};
};

}  // namespace regatta::server
