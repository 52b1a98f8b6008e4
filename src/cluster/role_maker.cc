#include "cluster/role_maker.h"

#include "absl/strings/str_join.h"
#include "cluster/endpoint.h"
#include "cluster/environment.h"
#include "cluster/network.h"

namespace regatta::cluster {

absl::StatusOr<ClusterSpec> MakeUserDefinedRole(const UserDefinedRole& role) {
  if (role.role != Role::kServer && role.role != Role::kWorker)
    return absl::InvalidArgumentError(absl::StrCat("role: want server or worker, not ", RoleName(role.role)));
  if (role.worker_num < 1 || role.worker_num > kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker_num: ", role.worker_num, " is out of range: want 1 to ", kMaxWorkers));
  }
  const absl::StatusOr<std::vector<Endpoint>> servers = ParseEndpoints(absl::StrJoin(role.server_endpoints, ","));
  if (!servers.ok()) return base::Annotate(servers.status(), "server_endpoints");
  const bool server = role.role == Role::kServer;
  const int count = server ? static_cast<int>(servers->size()) : role.worker_num;
  if (role.current_id < 0 || role.current_id >= count) {
    return absl::InvalidArgumentError(absl::StrCat("current_id: ", role.current_id, " is out of range: there are ",
                                                   count, server ? " servers" : " workers", ", so want 0 to ",
                                                   count - 1));
  }
  ClusterSpec spec;
  spec.role = role.role;
  spec.family = Family::kExplicit;
  spec.servers = ToStrings(*servers);
  spec.workers = role.worker_num;
  spec.index = role.current_id;
  ASSIGN_OR_RETURN(const CoreDumps dumps, ReadCoreDumps(ProcessEnvironment()));
  ASSIGN_OR_RETURN(spec.credentials, LoadCredentials(role.credentials, dumps));
  spec.network = spec.credentials != nullptr ? Network::kGuarded : role.network;
  if (server) spec.endpoint = spec.servers[static_cast<size_t>(role.current_id)];
  RETURN_IF_ERROR(CheckNetwork(spec));
  return spec;
}

}  // namespace regatta::cluster
