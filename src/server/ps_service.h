// The verbs of wire/ps.proto. The first worker's Connect makes the job; before it there is nothing to serve.
// Thread-safety: wire/call_front.h calls everything concurrently.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "metrics/exposition.h"
#include "server/hosted_job.h"
#include "server/lane_register.h"
#include "server/log_compactor.h"
#include "server/token_guard.h"
#include "wire/raw_service.h"

namespace regatta::server {

// What becomes of a job's log when the job is over.
enum class JobEnd : uint8_t { kForgotten, kKept };

struct ServiceOptions {
  int workers = 0;   // that must take part; 0 = as many as the first one says
  int servers = 0;   // that the job must have; 0 = as many as the first worker says
  std::string load;  // a save to start from; "" = none
  CompactorOptions compactor;
  std::shared_ptr<const cluster::Credentials> credentials;  // null: everybody may call
  std::chrono::duration<double> lives{Roster::kLives};      // a worker that was heard: no other takes its place
  std::chrono::duration<double> hello_timeout{10};          // of a lane that was opened and has not said who it is
  uint64_t push_memory = PushMemory::kDefaultLimit;         // bytes of a worker's pushes that wait to be applied
};

class PsService final : public wire::RawService {
 public:
  // `journal`, which may be null, outlives the service.
  PsService(const ServiceOptions& options, Journal* journal);
  // Goes on with the job that the journal holds, if any. Before the first worker comes.
  absl::Status Recover();
  // Fills the tables from `load` now, for a server that knows its place. Before the first worker comes. Without it the
  // first worker waits while they are filled.
  absl::Status LoadNow(const ServerPlace& place);

  grpc::Status Admit(const grpc::ServerContext& context) override { return guard_.Admit(context); }
  grpc::Status Connect(grpc::ServerContext* context, const ps::ConnectRequest* request,
                       ps::ConnectReply* reply) override;
  grpc::Status RawLane(grpc::ServerContext* context, wire::LaneStream* stream) override;
  grpc::Status Gather(grpc::ServerContext* context, ps::GatherRequest* request, ps::GatherReply* reply) override;
  grpc::Status Heartbeat(grpc::ServerContext* context, const ps::HeartbeatRequest* request,
                         ps::HeartbeatReply* reply) override;
  grpc::Status Goodbye(grpc::ServerContext* context, const ps::GoodbyeRequest* request,
                       ps::GoodbyeReply* reply) override;
  grpc::Status Status(grpc::ServerContext* context, const ps::StatusRequest* request, ps::StatusReply* reply) override;

  // The job is over here. kForgotten: nobody will come back to it, and what was kept on the disk for its return is
  // removed.
  void Finish(JobEnd end);

  // Whether the data_dir, if there is one, is still this server's (lease.h).
  absl::Status Held() const { return journal_ == nullptr ? absl::OkStatus() : journal_->Held(); }

  // Null before the first worker has come.
  HostedJob* job() const;
  // Ends lanes that were opened and say nothing.
  void CancelSilentLanes() { lanes_.CancelSilent(); }
  // Adds regatta_server_* and regatta_table_*.
  void Collect(metrics::Exposition& out) const;

 private:
  absl::StatusOr<HostedJob*> JoinJob(const ps::ConnectRequest& request);
  absl::StatusOr<HostedJob*> FindOrStartJob(const ps::ConnectRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StartJob(const ps::ConnectRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::unique_ptr<TableShare>> TablesFor(const table::ModelConfig& configs, const ServerPlace& place)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<HostedJob*> JobOf(const ps::WorkerId& worker) const;
  absl::Status CheckJob(const ps::WorkerId& worker) const;
  absl::Status ServeLane(grpc::ServerContext* context, wire::LaneStream* stream);
  // What a call is answered: a server that has lost its data_dir says nothing else any more.
  grpc::Status Answer(const absl::Status& status) const;

  TokenGuard guard_;
  LaneRegister lanes_;
  const ServiceOptions options_;
  Journal* const journal_;
  const uint64_t incarnation_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable base::Mutex mu_;
  std::shared_ptr<const ps::JobSpec> spec_ ABSL_GUARDED_BY(mu_);  // as the first worker brought it; null without a job
  base::Mutex compare_mu_;                                        // held by one Connect that is compared with spec_
  uint64_t job_id_ ABSL_GUARDED_BY(mu_) = 0;                      // the same on all servers of the job
  std::unique_ptr<TableShare> loaded_ ABSL_GUARDED_BY(mu_);       // until the job takes it
  std::unique_ptr<HostedJob> job_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<LogCompactor> compactor_ ABSL_GUARDED_BY(mu_);  // of a durable job
};

}  // namespace regatta::server
