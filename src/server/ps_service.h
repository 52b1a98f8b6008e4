// The verbs of wire/ps.proto. The first worker's Connect makes the job; before it there is nothing to serve.
// Thread-safety: gRPC calls everything concurrently.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "metrics/exposition.h"
#include "server/hosted_job.h"
#include "server/lane_register.h"
#include "server/token_guard.h"
#include "wire/raw_service.h"

namespace regatta::server {

class PsService final : public wire::RawService {
 public:
  // `workers`: how many must take part; 0 = as many as the first one says. `load`: a save to start from; "" = none.
  // `credentials` null: everybody may call. A lane says HELLO within `hello_timeout`.
  PsService(int workers, const std::string& load, std::shared_ptr<const cluster::Credentials> credentials,
            std::chrono::duration<double> hello_timeout);
  // Fills the tables from `load` now, for a server that knows its place. Before the first worker comes. Without it the
  // first worker waits while they are filled.
  absl::Status LoadNow(const ServerPlace& place);

  grpc::Status Connect(grpc::ServerContext* context, const ps::ConnectRequest* request,
                       ps::ConnectReply* reply) override;
  grpc::Status RawLane(grpc::ServerContext* context, wire::LaneStream* stream) override;
  grpc::Status Gather(grpc::ServerContext* context, const ps::GatherRequest* request, ps::GatherReply* reply) override;
  grpc::Status Heartbeat(grpc::ServerContext* context, const ps::HeartbeatRequest* request,
                         ps::HeartbeatReply* reply) override;
  grpc::Status Goodbye(grpc::ServerContext* context, const ps::GoodbyeRequest* request,
                       ps::GoodbyeReply* reply) override;
  grpc::Status Status(grpc::ServerContext* context, const ps::StatusRequest* request, ps::StatusReply* reply) override;

  // Null before the first worker has come.
  HostedJob* job() const;
  // Ends lanes that were opened and say nothing.
  void CancelSilentLanes() { lanes_.CancelSilent(); }
  // Adds regatta_server_* and regatta_table_*.
  void Collect(metrics::Exposition& out) const;

 private:
  absl::StatusOr<HostedJob*> JoinJob(const ps::ConnectRequest& request);
  absl::StatusOr<std::unique_ptr<TableShare>> TablesFor(const table::ModelConfig& configs, const ServerPlace& place)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<HostedJob*> JobOf(const ps::WorkerId& worker) const;
  absl::Status ServeLane(grpc::ServerContext* context, wire::LaneStream* stream);

  TokenGuard guard_;
  LaneRegister lanes_;
  const int workers_;
  const std::string load_;
  const uint64_t incarnation_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable base::Mutex mu_;
  ps::JobSpec spec_ ABSL_GUARDED_BY(mu_);                    // as the first worker brought it
  std::unique_ptr<TableShare> loaded_ ABSL_GUARDED_BY(mu_);  // until the job takes it
  std::unique_ptr<HostedJob> job_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::server
