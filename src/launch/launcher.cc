#include "launch/launcher.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/printable.h"
#include "cluster/environment.h"
#include "cluster/network.h"
#include "launch/command.h"
#include "launch/job_plan.h"
#include "launch/log_lock.h"
#include "launch/own_address.h"
#include "launch/port_lease.h"
#include "launch/supervisor.h"

namespace regatta::launch {
namespace {

enum Exit : int { kDone = 0, kFailed = 1, kUsage = 2 };

const char* ProgramOf(Flavour flavour) { return flavour == Flavour::kFleetrun ? "fleetrun" : "regatta launch"; }

int Fail(Flavour flavour, const absl::Status& status, Exit code) {
  const std::string message = base::PrintableLines(std::string(status.message()));
  const std::string program = ProgramOf(flavour);
  const bool named = message.starts_with(program + ":");
  std::fprintf(stderr, "%s%s%s\n", named ? "" : program.c_str(), named ? "" : ": ", message.c_str());
  return code;
}

absl::Status CheckLists(const LaunchArgs& args) {
  for (const auto* list : {&args.servers, &args.workers})
    for (const cluster::Endpoint& endpoint : *list)
      RETURN_IF_ERROR(cluster::CheckHost(endpoint.host, args.access.network));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CommandOf(const LaunchArgs& args, const cluster::Getenv& getenv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot read /proc/self/exe: ", error.message()));
  return ResolveCommand(args.command, self.string(), getenv("PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
}

// A port a server, none of those that --metrics_port gives out.
absl::StatusOr<std::vector<PortLease>> TakePorts(const LaunchArgs& args) {
  const int first = args.metrics_port.value_or(0), end = first == 0 ? 0 : first + args.server_num + args.worker_num;
  std::vector<PortLease> leases, unfit;  // the latter held meanwhile, so as not to be taken again
  while (static_cast<int>(leases.size()) < args.server_num) {
    ASSIGN_OR_RETURN(PortLease lease, PortLease::Take());
    const bool fits = lease.port() < first || lease.port() >= end;
    (fits ? leases : unfit).push_back(std::move(lease));
  }
  return leases;
}

// Where servers that may be started again log, unless told otherwise: nobody else's.
std::string OwnDataDir(const LaunchArgs& args) { return absl::StrCat(args.log_dir, "/data"); }

// Servers that begin anew must not go on with what the job before has logged. What the user named is kept aside.
absl::Status ClearDataDirs(const LaunchArgs& args, const JobPlan& plan, int times) {
  for (const PlannedProcess& process : plan.processes) {
    if (process.role != cluster::Role::kServer) continue;
    const std::string folder = absl::StrCat(args.data_dir, "/server.", process.index);
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) continue;
    RETURN_IF_ERROR(args.data_dir == OwnDataDir(args)
                        ? base::RemoveTree(folder)
                        : base::RenameDurably(folder, absl::StrCat(folder, ".before_restart.", times)));
  }
  return absl::OkStatus();
}

int RunJob(Flavour flavour, const LaunchArgs& args, std::vector<std::string> command, JobPlan plan,
           std::vector<PortLease> leases) {
  if (const absl::Status made = base::MakeFolders(args.log_dir); !made.ok()) return Fail(flavour, made, kFailed);
  const absl::StatusOr<LogLock> lock = LogLock::Take(args.log_dir, plan);
  if (!lock.ok()) return Fail(flavour, lock.status(), absl::IsFailedPrecondition(lock.status()) ? kUsage : kFailed);
  if (args.data_dir == OwnDataDir(args)) {
    if (const absl::Status own = base::CheckOwnFolder(args.data_dir); !own.ok() && !absl::IsNotFound(own))
      return Fail(flavour, own, kFailed);
    for (const PlannedProcess& process : plan.processes) {
      if (process.role != cluster::Role::kServer) continue;
      const absl::Status emptied = base::RemoveTree(absl::StrCat(args.data_dir, "/server.", process.index));
      if (!emptied.ok()) return Fail(flavour, emptied, kFailed);
    }
  }
  SupervisorOptions options;
  options.program = ProgramOf(flavour);
  options.command = std::move(command);
  options.max_restarts = args.max_restarts;
  options.restarts_workers = args.workers_return();
  options.worker_loss = args.worker_loss;
  options.clear_for_new_job = [args, plan](int times) { return ClearDataDirs(args, plan, times); };
  options.grace = std::chrono::milliseconds(static_cast<int64_t>(args.grace * 1000));
  return Supervisor(std::move(options), std::move(plan), std::move(leases)).Run();
}

int RunLists(Flavour flavour, const LaunchArgs& args, std::vector<std::string> command, const cluster::Getenv& getenv) {
  const absl::StatusOr<OwnAddress> own = OwnAddress::Find(cluster::ReadText(getenv, "POD_IP"));
  if (!own.ok()) return Fail(flavour, own.status(), kUsage);
  absl::StatusOr<JobPlan> plan = PlanLists(args, *own);
  if (!plan.ok()) return Fail(flavour, plan.status(), kUsage);
  return RunJob(flavour, args, std::move(command), *std::move(plan), {});
}

int RunLocal(Flavour flavour, const LaunchArgs& args, std::vector<std::string> command) {
  absl::StatusOr<std::vector<PortLease>> leases = TakePorts(args);
  if (!leases.ok()) return Fail(flavour, leases.status(), kFailed);
  std::vector<cluster::Endpoint> endpoints;
  for (const PortLease& lease : *leases) endpoints.push_back({"127.0.0.1", lease.port()});
  return RunJob(flavour, args, std::move(command), PlanLocal(args, endpoints), *std::move(leases));
}

}  // namespace

int Launch(Flavour flavour, int argc, const char* const* argv, const ReadWorkerLoss& read_loss) {
  absl::StatusOr<LaunchArgs> args = ParseLaunchArgs(flavour, argc, argv);
  if (!args.ok()) return Fail(flavour, args.status(), kUsage);
  if (!args->help.empty()) {
    std::fputs(args->help.c_str(), stdout);
    return kDone;
  }
  args->since = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const cluster::Getenv getenv = cluster::ProcessEnvironment();
  const absl::StatusOr<cluster::Access> access = cluster::ReadAccess(getenv, args->access);
  if (!access.ok()) return Fail(flavour, access.status(), kUsage);
  args->access = *access;
  if (!args->metrics_port.has_value()) {
    const absl::StatusOr<std::optional<int>> port = cluster::ReadMetricsPort(getenv);
    if (!port.ok()) return Fail(flavour, port.status(), kUsage);
    args->metrics_port = *port;
  }
  if (!getenv("OMP_NUM_THREADS").has_value()) args->cores = static_cast<int>(std::thread::hardware_concurrency());
  if (args->data_dir.empty()) args->data_dir = cluster::ReadDataDir(getenv);
  if (args->data_dir.empty() && args->max_restarts > 0) args->data_dir = OwnDataDir(*args);
  if (const absl::Status status = CheckMetricsPorts(*args); !status.ok()) return Fail(flavour, status, kUsage);
  if (const absl::Status status = CheckLists(*args); !status.ok()) return Fail(flavour, status, kUsage);
  absl::StatusOr<std::vector<std::string>> command = CommandOf(*args, getenv);
  if (!command.ok()) return Fail(flavour, command.status(), kUsage);
  // A program of the user's own says LossPolicy::kAwait if it can go on; otherwise the servers refuse its restarted
  // worker.
  if (Trains(args->command)) args->worker_loss = read_loss(TrainWords(args->command));
  if (args->by_lists()) return RunLists(flavour, *args, *std::move(command), getenv);
  return RunLocal(flavour, *args, *std::move(command));
}

}  // namespace regatta::launch
