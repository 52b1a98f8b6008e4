// Which processes this machine starts, and what each is told.
// Thread-safety: plain values, pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cluster/cluster_spec.h"
#include "launch/launch_args.h"
#include "launch/own_address.h"

namespace regatta::launch {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct PlannedProcess {
  cluster::Role role = cluster::Role::kWorker;
  int index = 0;  // in the whole job
  std::string endpoint;
  std::string log;        // path of its log file
  int metrics_port = 0;   // 0 = none, or one that the process chooses
  Variables environment;  // added to the launcher's own, from which every role variable is taken out

  // "server 0", "worker 1".
  std::string Name() const { return absl::StrCat(cluster::RoleName(role), " ", index); }
};

// Whether servers are ended when the workers started here are done: only where these are all of the job's.
enum class WorkersHere : uint8_t { kAll, kSome };

struct JobPlan {
  std::vector<PlannedProcess> processes;  // servers first
  WorkersHere workers_here = WorkersHere::kAll;
};

// Refuses a --metrics_port whose last process would have a port above 65535.
absl::Status CheckMetricsPorts(const LaunchArgs& args);

// Servers at `endpoints` on this machine, args.worker_num workers.
JobPlan PlanLocal(const LaunchArgs& args, const std::vector<cluster::Endpoint>& endpoints);

// The entries of args.servers and args.workers that this machine owns; an error where it owns none.
absl::StatusOr<JobPlan> PlanLists(const LaunchArgs& args, const OwnAddress& own);

}  // namespace regatta::launch
