// The command line of a server: `regatta pserver`, whose words arrive unchanged at regatta-pserver.
//   regatta-pserver --port=7164 --ports_num=1 --ports_num_for_sparse=1 --num_gradient_servers=1 …     explicit (v2)
//   regatta-pserver --role-from-environment [--insecure] -- train -m config.yaml …
// The second form is what `regatta train` becomes in the PSERVER role: place, address and workers come from
// ReadEnvironment, and the words behind -- are the command as the user typed it.
// Thread-safety: plain values, a pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/cluster_spec.h"
#include "cluster/environment.h"

namespace regatta::cluster {

inline constexpr char kRoleFromEnvironment[] = "--role-from-environment";

struct PserverArgs {
  // Role::kServer. With explicit flags the workers know the servers' order, not the server: spec.servers is then empty
  // and spec.index 0.
  ClusterSpec spec;
  // What to listen on, host:port each; sparse equals dense where no ports are set aside for sparse tables.
  ServerPorts listen;
  std::string load;                // a checkpoint to start from; "" = none
  std::string data_dir;            // where it logs what it acknowledges, and comes back from; "" = nowhere
  std::optional<int> log_limit;    // megabytes of that log
  std::optional<int> push_memory;  // megabytes of a worker's pushes that wait to be applied
  std::optional<double> lease;     // seconds; who is silent for longer in its data_dir may be replaced
  std::optional<double> since;     // seconds since 1970: a job in data_dir that has ended later is done, not begun anew
  std::string log_dir;             // "" = stderr only
  std::optional<int> metrics_port;   // 0 = any free one; absent = none
  std::vector<std::string> command;  // behind --; empty with explicit flags
  std::string help;                  // not empty: the user asked for help; print this and end well
};

// argv[0] is skipped. PADDLE_INIT_{PORT,PORTS_NUM,PORTS_NUM_FOR_SPARSE,NUM_GRADIENT_SERVERS} are defaults of the flags.
// An error is the user's (exit 2) and says what to do.
absl::StatusOr<PserverArgs> ParsePserverArgs(int argc, const char* const* argv, const Getenv& getenv);

}  // namespace regatta::cluster
