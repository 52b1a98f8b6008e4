// A server's share of a job: its tables, who takes part, and in sync the stages of its lanes.
// Thread-safety: all methods are concurrent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "metrics/rate.h"
#include "server/job_spec.h"
#include "server/rendezvous.h"
#include "server/roster.h"
#include "server/sync_stage.h"
#include "server/traffic.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::server {

class HostedJob {
 public:
  // `server` is this server's index among spec.lanes.servers.
  static absl::StatusOr<std::unique_ptr<HostedJob>> Create(const JobSpec& spec, int server);

  const JobSpec& spec() const { return spec_; }
  int server() const { return server_; }
  Roster& roster() { return roster_; }
  const Roster& roster() const { return roster_; }
  Rendezvous& rendezvous() { return rendezvous_; }
  Traffic& traffic() { return traffic_; }
  const Traffic& traffic() const { return traffic_; }
  // Of keys pulled and pushed; whoever watches over the job calls Sample now and then.
  double keys_per_second() const { return keys_.PerSecond(); }
  void Sample() { keys_.Update(traffic_.keys_pulled.value() + traffic_.keys_pushed.value()); }

  int sparse_tables() const { return static_cast<int>(sparse_.size()); }
  table::SparseTable& sparse(int i) const { return *sparse_[static_cast<size_t>(i)]; }
  table::DenseTable& dense() const { return *dense_; }
  uint64_t rows() const;
  // The virtual shards that this server has.
  wire::Range shards() const;
  // Null unless the mode is sync.
  SyncStage* stage(int lane) const { return stages_.empty() ? nullptr : stages_[static_cast<size_t>(lane)].get(); }

  // Fills this server's share from a save of any number of servers. Before the first push.
  absl::Status LoadFrom(const std::string& folder);

  // One update of the tables by the gradients of a step.
  absl::Status Apply(const SyncStage::Sum& step);

 private:
  HostedJob(const JobSpec& spec, int server);

  const JobSpec spec_;
  const int server_;
  Roster roster_;
  Rendezvous rendezvous_;
  Traffic traffic_;
  metrics::Rate keys_;
  std::vector<std::unique_ptr<table::SparseTable>> sparse_;
  std::unique_ptr<table::DenseTable> dense_;
  std::vector<std::unique_ptr<SyncStage>> stages_;
};

}  // namespace regatta::server
