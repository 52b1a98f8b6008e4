// The command line of `regatta launch` and of `fleetrun`: how many processes, where, and the command each of them runs.
// Thread-safety: plain values, a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/access.h"
#include "cluster/endpoint.h"
#include "launch/worker_loss.h"

namespace regatta::launch {

// Two names for one command; they differ in what help and errors say to type.
enum class Flavour : uint8_t { kLaunch, kFleetrun };

struct LaunchArgs {
  int server_num = 0;  // with lists: their lengths
  int worker_num = 0;
  // --servers and --workers; both empty where everything runs on free ports of this machine.
  std::vector<cluster::Endpoint> servers;
  std::vector<cluster::Endpoint> workers;
  std::string log_dir = "log";
  double grace = 30;  // seconds that a process gets to end by itself
  // A process that is killed is started again, so many times over the life of the job; 0 = it ends the job.
  int max_restarts = 0;
  double since = 0;      // when the launcher began, in seconds since 1970
  std::string data_dir;  // server N logs what it acknowledges in data_dir/server.N; "" = nowhere
  // Of server 0; the others count on from it, servers before workers. 0 = each chooses a free one; absent = none.
  std::optional<int> metrics_port;
  // Shared out among the workers of this machine by OMP_NUM_THREADS, which PyTorch and NumPy go by; 0 = it is set
  // already.
  int cores = 0;
  WorkerLoss worker_loss;  // by the configuration; the flags do not say it
  cluster::Access access;
  std::vector<std::string> command;  // as typed
  std::string help;                  // not empty: the user asked for help; print this and end well

  bool by_lists() const { return !servers.empty(); }
  // Whether a worker that is killed is started again and goes on where it was.
  bool workers_return() const;
};

// argv[0] is skipped. The launcher's flags end at -- or at the first word that is none of them. An error is the user's
// (exit 2) and says what to type; flags of launchers that do not exist yet are refused by name.
absl::StatusOr<LaunchArgs> ParseLaunchArgs(Flavour flavour, int argc, const char* const* argv);

}  // namespace regatta::launch
