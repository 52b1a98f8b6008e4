// The environment variables that say what this process is in its job, read here and nowhere else.
//
// Which role? First match wins:
//   1  explicit arguments                                        role_maker.h, pserver_args.h
//   2  TRAINING_ROLE                                             Fleet: PADDLE_PSERVERS_IP_PORT_LIST,
//   PADDLE_TRAINERS_NUM,
//                                                                PADDLE_PORT (server) or PADDLE_TRAINER_ID (worker)
//   3  PADDLE_TRAINING_ROLE, or PADDLE_PSERVER_IPS alone         Fluid: PADDLE_PSERVER_IPS, PADDLE_TRAINERS,
//                                                                PADDLE_CURRENT_IP (server) or PADDLE_TRAINER_ID
//                                                                (worker)
//   4  PADDLE_INIT_PSERVERS                                      v2: a worker; the other PADDLE_INIT_* have defaults
//   5  PADDLE_TRAINER_ENDPOINTS and PADDLE_CURRENT_ENDPOINT      a collective rank
//   6  OMPI_COMM_WORLD_SIZE > 1, SLURM_STEP_ID and SLURM_NTASKS > 1   an MPI or Slurm rank
//   7  none                                                      local
// A family counts as set where the variable that decides it is set; two set families must agree. An empty variable is
// an unset one, but an empty role is an error: a script that lost its role must not train alone.
// Thread-safety: ReadEnvironment is a pure function of what Getenv returns; ClearProxyVariables changes the process's
// environment and belongs to the first lines of main.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cluster/cluster_spec.h"
#include "cluster/core_dumps.h"
#include "cluster/endpoint.h"
#include "cluster/variable.h"

namespace regatta::cluster {

// Every error is the user's (exit 2). It lists every missing name at once, or names the variables and values that are
// wrong or disagree. `said` is what flags and configuration say; it goes before the environment (ReadAccess).
// Collective and MPI ranks are recognised; whoever cannot play them refuses them (CheckAvailable).
absl::StatusOr<ClusterSpec> ReadEnvironment(const Getenv& getenv, const Access& said = {});

// The role and the place alone: no address is judged, no file is read.
absl::StatusOr<ClusterSpec> ReadPlace(const Getenv& getenv);

// An error for the roles that this build cannot play.
absl::Status CheckAvailable(const ClusterSpec& spec);

// `said` with what REGATTA_INSECURE, REGATTA_TOKEN_FILE, REGATTA_TLS_{CERT,KEY,CA} and REGATTA_ADMIN_TOKEN_FILE say;
// the files are read. With credentials every address is allowed, and --insecure changes nothing.
absl::StatusOr<Access> ReadAccess(const Getenv& getenv, const Access& said);

// REGATTA_CORE_DUMPS=1: a process that has read credentials may leave core dumps, and be debugged.
absl::StatusOr<CoreDumps> ReadCoreDumps(const Getenv& getenv);

// The servers that the first of the families names that names any; empty where none does. For looking at a job from
// outside: no role is needed.
absl::StatusOr<std::vector<Endpoint>> ReadServers(const Getenv& getenv);

// REGATTA_METRICS_PORT: where the process shows its metrics, unless a flag says so; 0 = any free port, absent =
// nowhere.
absl::StatusOr<std::optional<int>> ReadMetricsPort(const Getenv& getenv);
// REGATTA_DATA_DIR: where a server logs what it acknowledges; "" = nowhere.
std::string ReadDataDir(const Getenv& getenv);
// REGATTA_LOG_LIMIT: megabytes that the log in it may come to, about, before a checkpoint makes it short.
inline constexpr int kDefaultLogLimit = 4096;
inline constexpr int kLeastLogLimit = 1;
absl::StatusOr<int> ReadLogLimit(const Getenv& getenv);
// REGATTA_PUSH_MEMORY: megabytes that one worker's pushes may hold on a server until they are applied.
inline constexpr int kDefaultPushMemory = 128;
inline constexpr int kLeastPushMemory = 1;
absl::StatusOr<int> ReadPushMemory(const Getenv& getenv);
// REGATTA_LEASE_SECONDS: after which a server that has not been heard in its data_dir may be replaced.
inline constexpr double kDefaultLease = 10, kLeastLease = 0.2, kMostLease = 3600;
absl::StatusOr<double> ReadLease(const Getenv& getenv);
// REGATTA_JOB_SINCE, which regatta launch sets: when it began, in seconds since 1970. A server that is started again
// and finds that its job has ended since then has nothing to do.
inline constexpr char kJobSince[] = "REGATTA_JOB_SINCE";
absl::StatusOr<std::optional<double>> ReadJobSince(const Getenv& getenv);

// Every name above that says a role or a place: what a launcher clears before it gives a child its own.
std::span<const std::string_view> RoleVariables();

// A proxy would be asked for the servers' addresses: this process does without.
void ClearProxyVariables();

}  // namespace regatta::cluster
