#include "cluster/cluster_spec.h"

#include <algorithm>

#include "cluster/endpoint.h"

namespace regatta::cluster {

ServerPorts PortsFrom(const std::string& first, int ports_num, int ports_num_for_sparse) {
  ServerPorts ports;
  const absl::StatusOr<Endpoint> parsed = ParseEndpoint(first);
  if (!parsed.ok()) return ports;
  Endpoint endpoint = *parsed;
  for (int i = 0; i < ports_num; ++i, ++endpoint.port) ports.dense.push_back(endpoint.ToString());
  for (int i = 0; i < ports_num_for_sparse; ++i, ++endpoint.port) ports.sparse.push_back(endpoint.ToString());
  if (ports.sparse.empty()) ports.sparse = ports.dense;
  return ports;
}

std::vector<std::string> AllPorts(const ServerPorts& ports) {
  std::vector<std::string> all = ports.dense;
  for (const std::string& endpoint : ports.sparse)
    if (std::find(all.begin(), all.end(), endpoint) == all.end()) all.push_back(endpoint);
  return all;
}

const char* RoleName(Role role) {
  switch (role) {
    case Role::kLocal:
      return "local";
    case Role::kServer:
      return "server";
    case Role::kWorker:
      return "worker";
    case Role::kCollectiveRank:
      return "collective rank";
    case Role::kMpiRank:
      return "MPI rank";
  }
  return "unknown";
}

}  // namespace regatta::cluster
