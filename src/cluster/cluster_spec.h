// What a process is in its job: its role, its place, and where the servers are. Made from the environment
// (environment.h) or from explicit arguments (role_maker.h); everything in it has been checked.
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/access.h"

namespace regatta::cluster {

enum class Role : uint8_t { kLocal, kServer, kWorker, kCollectiveRank, kMpiRank };

// Which set of names told the role.
enum class Family : uint8_t { kNone, kExplicit, kFleet, kFluid, kV2, kCollective, kMpi };

struct ClusterSpec {
  Role role = Role::kLocal;
  Family family = Family::kNone;
  // host:port of each server's first port, in the order that all processes agree on. Empty outside the server modes.
  std::vector<std::string> servers;
  int workers = 1;
  // Of this server among servers, or of this worker or rank among workers.
  int index = 0;
  // A server's own host:port, to bind and to print. A worker's is empty.
  std::string endpoint;
  // A server listens on ports_num ports from its first one, and then on ports_num_for_sparse ports for sparse tables;
  // 0 of these means that sparse tables are served on the first ports as well.
  int ports_num = 1;
  int ports_num_for_sparse = 0;
  // v2's trainer_count: training threads of this process. Absent in the other families.
  std::optional<int> threads;
  Network network = Network::kLoopbackOnly;
  std::shared_ptr<const Credentials> credentials = nullptr;  // null: none
  // Seconds that a worker waits for servers; absent = the runner's own default.
  std::optional<double> server_wait_timeout;
  // Whether a worker that is killed is started again: REGATTA_WORKERS_RETURN, which regatta launch sets.
  bool workers_return = false;
  // What the user should read in the log: readings of variables that could be meant otherwise.
  std::vector<std::string> notes;

  bool is_first_worker() const { return role == Role::kWorker && index == 0; }
};

// The ports of one server as endpoints.
struct ServerPorts {
  std::vector<std::string> dense;
  std::vector<std::string> sparse;  // equal to dense where no ports are set aside
};

// `first` is an entry of servers. The ports were checked to exist when the spec was made.
ServerPorts PortsFrom(const std::string& first, int ports_num, int ports_num_for_sparse);
inline ServerPorts PortsOfServer(const ClusterSpec& spec, int server) {
  return PortsFrom(spec.servers[static_cast<size_t>(server)], spec.ports_num, spec.ports_num_for_sparse);
}

// Every port once: what the server listens on.
std::vector<std::string> AllPorts(const ServerPorts& ports);

// "server", "worker", …: for messages.
const char* RoleName(Role role);

}  // namespace regatta::cluster
