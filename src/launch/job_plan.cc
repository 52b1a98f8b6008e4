#include "launch/job_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cluster/environment.h"

namespace regatta::launch {
namespace {

using cluster::Endpoint;
using cluster::Role;

// What every process of the job is told: the Fleet family's variables.
Variables CommonVariables(const LaunchArgs& args, const std::vector<Endpoint>& servers) {
  Variables variables = {{"PADDLE_PSERVERS_IP_PORT_LIST", cluster::JoinEndpoints(servers)},
                         {"PADDLE_TRAINERS_NUM", std::to_string(args.worker_num)},
                         {"PYTHONUNBUFFERED", "1"}};  // so that a script's log shows its lines at once
  if (!args.workers.empty()) variables.emplace_back("PADDLE_TRAINER_ENDPOINTS", cluster::JoinEndpoints(args.workers));
  if (args.access.network == cluster::Network::kTrusted) variables.emplace_back("REGATTA_INSECURE", "1");
  for (auto& variable : cluster::CredentialVariables(args.access.files)) variables.push_back(std::move(variable));
  return variables;
}

// `place` counts the job's processes, servers first, whichever node they are on.
void AddMetricsPort(const LaunchArgs& args, int place, PlannedProcess& process) {
  if (!args.metrics_port.has_value()) return;
  process.metrics_port = *args.metrics_port == 0 ? 0 : *args.metrics_port + place;
  process.environment.emplace_back("REGATTA_METRICS_PORT", std::to_string(process.metrics_port));
}

PlannedProcess Server(const LaunchArgs& args, const std::vector<Endpoint>& servers, int index) {
  const Endpoint& own = servers[static_cast<size_t>(index)];
  PlannedProcess process;
  process.role = Role::kServer;
  process.index = index;
  process.endpoint = own.ToString();
  process.log = absl::StrCat(args.log_dir, "/serverlog.", index);
  process.environment = CommonVariables(args, servers);
  AddMetricsPort(args, index, process);
  process.environment.emplace_back("TRAINING_ROLE", "PSERVER");
  process.environment.emplace_back("POD_IP", own.host);
  process.environment.emplace_back("PADDLE_PORT", std::to_string(own.port));
  process.environment.emplace_back("PADDLE_PSERVER_ID", std::to_string(index));
  if (!args.data_dir.empty()) {
    process.environment.emplace_back("REGATTA_DATA_DIR", absl::StrCat(args.data_dir, "/server.", index));
    process.environment.emplace_back(cluster::kJobSince, absl::StrFormat("%.6f", args.since));
  }
  return process;
}

PlannedProcess Worker(const LaunchArgs& args, const std::vector<Endpoint>& servers, int index) {
  PlannedProcess process;
  process.role = Role::kWorker;
  process.index = index;
  process.log = absl::StrCat(args.log_dir, "/workerlog.", index);
  process.environment = CommonVariables(args, servers);
  AddMetricsPort(args, args.server_num + index, process);
  process.environment.emplace_back("TRAINING_ROLE", "TRAINER");
  process.environment.emplace_back("PADDLE_TRAINER_ID", std::to_string(index));
  if (args.workers_return()) process.environment.emplace_back("REGATTA_WORKERS_RETURN", "1");
  if (!args.workers.empty()) {
    const Endpoint& own = args.workers[static_cast<size_t>(index)];
    process.endpoint = own.ToString();
    process.environment.emplace_back("POD_IP", own.host);
    process.environment.emplace_back("PADDLE_CURRENT_ENDPOINT", process.endpoint);
  }
  return process;
}

// Several workers with a thread for each core each would spend their time in each other's way.
void ShareCores(const LaunchArgs& args, JobPlan& plan) {
  const auto is_worker = [](const PlannedProcess& process) { return process.role == Role::kWorker; };
  const auto workers = static_cast<int>(std::count_if(plan.processes.begin(), plan.processes.end(), is_worker));
  if (args.cores == 0 || workers < 2) return;
  const std::string threads = std::to_string(std::max(args.cores / workers, 1));
  for (PlannedProcess& process : plan.processes)
    if (is_worker(process)) process.environment.emplace_back("OMP_NUM_THREADS", threads);
}

}  // namespace

absl::Status CheckMetricsPorts(const LaunchArgs& args) {
  const int processes = args.server_num + args.worker_num;
  const int last = args.metrics_port.value_or(0) + processes - 1;
  if (!args.metrics_port.has_value() || *args.metrics_port == 0 || last <= 65'535) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--metrics_port ", *args.metrics_port, ": the ports of ", processes,
                                                 " processes end at ", last, ", above 65535"));
}

JobPlan PlanLocal(const LaunchArgs& args, const std::vector<Endpoint>& endpoints) {
  JobPlan plan;
  for (int i = 0; i < static_cast<int>(endpoints.size()); ++i) plan.processes.push_back(Server(args, endpoints, i));
  for (int i = 0; i < args.worker_num; ++i) plan.processes.push_back(Worker(args, endpoints, i));
  ShareCores(args, plan);
  return plan;
}

absl::StatusOr<JobPlan> PlanLists(const LaunchArgs& args, const OwnAddress& own) {
  JobPlan plan;
  int workers_here = 0;
  for (int i = 0; i < args.server_num; ++i)
    if (own.Owns(args.servers[static_cast<size_t>(i)])) plan.processes.push_back(Server(args, args.servers, i));
  for (int i = 0; i < args.worker_num; ++i) {
    if (!own.Owns(args.workers[static_cast<size_t>(i)])) continue;
    plan.processes.push_back(Worker(args, args.servers, i));
    ++workers_here;
  }
  if (plan.processes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "none of --servers=", cluster::JoinEndpoints(args.servers),
        " and --workers=", cluster::JoinEndpoints(args.workers), " is at an address of this machine (",
        absl::StrJoin(own.hosts(), ", "), "); set POD_IP to the address under which this node is in the lists"));
  }
  ShareCores(args, plan);
  plan.workers_here = workers_here == args.worker_num ? WorkersHere::kAll : WorkersHere::kSome;
  return plan;
}

}  // namespace regatta::launch
