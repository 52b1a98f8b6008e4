// Explicit roles: what a program says itself instead of the environment (UserDefinedRoleMaker).
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/cluster_spec.h"

namespace regatta::cluster {

struct UserDefinedRole {
  Role role = Role::kWorker;  // kServer or kWorker
  int current_id = 0;
  int worker_num = 1;
  std::vector<std::string> server_endpoints = {};
  Network network = Network::kLoopbackOnly;
  CredentialFiles credentials = {};
};

// Refuses ids and counts out of range, endpoints that are no host:port or stand twice, and addresses outside this
// machine unless there are credentials or the network is trusted.
absl::StatusOr<ClusterSpec> MakeUserDefinedRole(const UserDefinedRole& role);

}  // namespace regatta::cluster
