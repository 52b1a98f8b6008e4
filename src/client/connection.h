// A worker's connection to the servers of its job, in two planes: control (job_control.h) and data (grpc_client.h).
// Thread-safety: control() and data() are concurrent, as the objects that they give.
// Invariant: the data plane ends before the control plane, whose heartbeat looks after the lanes.
#pragma once

#include <memory>

#include "base/status.h"
#include "client/client_options.h"
#include "client/grpc_client.h"
#include "client/job_control.h"

namespace regatta::client {

class Connection {
 public:
  // Joins the job (JobControl::Join), then opens the lanes; a server that goes away meanwhile is waited for.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ClientOptions& options);
  // Says goodbye where nobody has, before the lanes end.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  JobControl& control() { return *control_; }
  const JobControl& control() const { return *control_; }
  GrpcClient& data() { return *data_; }
  const GrpcClient& data() const { return *data_; }

 private:
  Connection() = default;

  std::unique_ptr<JobControl> control_;
  std::unique_ptr<GrpcClient> data_;
};

}  // namespace regatta::client
