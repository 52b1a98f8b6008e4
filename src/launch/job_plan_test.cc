#include "launch/job_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cluster/environment.h"
#include "cluster/testing/variables.h"

namespace regatta::launch {
namespace {

using cluster::Role;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

std::map<std::string, std::string> Map(const PlannedProcess& process) {
  return {process.environment.begin(), process.environment.end()};
}

// What the process would read of itself.
cluster::ClusterSpec Read(const PlannedProcess& process) {
  const auto spec = cluster::ReadEnvironment(cluster::From(Map(process)));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(cluster::ClusterSpec{});
}

LaunchArgs Lists(const char* servers, const char* workers) {
  LaunchArgs args;
  args.servers = cluster::ParseEndpoints(servers).value();
  args.workers = cluster::ParseEndpoints(workers).value();
  args.server_num = static_cast<int>(args.servers.size());
  args.worker_num = static_cast<int>(args.workers.size());
  return args;
}

TEST(JobPlan, WorkersOfAMachineShareItsCores) {
  const auto servers = cluster::ParseEndpoints("127.0.0.1:11").value();
  LaunchArgs args;
  args.server_num = 1;
  const auto threads = [&](int workers, int cores) {
    args.worker_num = workers;
    args.cores = cores;
    const JobPlan plan = PlanLocal(args, servers);
    EXPECT_FALSE(Map(plan.processes[0]).contains("OMP_NUM_THREADS")) << "the server's";
    const auto worker = Map(plan.processes.back());
    return worker.contains("OMP_NUM_THREADS") ? worker.at("OMP_NUM_THREADS") : "";
  };
  EXPECT_EQ(threads(3, 8), "2");
  EXPECT_EQ(threads(4, 2), "1");
  EXPECT_EQ(threads(1, 8), "") << "one worker has the machine";
  EXPECT_EQ(threads(4, 0), "") << "the user has said it";
}

TEST(JobPlan, EveryLocalProcessReadsItsOwnPlace) {
  LaunchArgs args;
  args.server_num = 2;
  args.worker_num = 3;
  args.log_dir = "l";
  const JobPlan plan = PlanLocal(args, cluster::ParseEndpoints("127.0.0.1:11,127.0.0.1:12").value());
  ASSERT_THAT(plan.processes, SizeIs(5));
  EXPECT_EQ(plan.workers_here, WorkersHere::kAll);
  for (int i = 0; i < 5; ++i) {
    const PlannedProcess& process = plan.processes[static_cast<size_t>(i)];
    const cluster::ClusterSpec spec = Read(process);
    EXPECT_EQ(spec.role, i < 2 ? Role::kServer : Role::kWorker);
    EXPECT_EQ(spec.index, i < 2 ? i : i - 2);
    EXPECT_EQ(spec.workers, 3);
    EXPECT_EQ(spec.servers, (std::vector<std::string>{"127.0.0.1:11", "127.0.0.1:12"}));
    EXPECT_EQ(process.log, i < 2 ? "l/serverlog." + std::to_string(i) : "l/workerlog." + std::to_string(i - 2));
  }
  EXPECT_EQ(Read(plan.processes[1]).endpoint, "127.0.0.1:12");
  EXPECT_EQ(plan.processes[1].Name(), "server 1");
  EXPECT_EQ(plan.processes[4].Name(), "worker 2");
}

TEST(JobPlan, ANodeStartsOnlyWhatIsAtItsOwnAddress) {
  const LaunchArgs args =
      Lists("127.0.0.11:36200,127.0.0.12:36200", "127.0.0.11:36100,127.0.0.12:36100,127.0.0.12:36101");
  const auto plan = PlanLists(args, OwnAddress({"127.0.0.12"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->processes, SizeIs(3));
  EXPECT_EQ(plan->workers_here, WorkersHere::kSome);
  EXPECT_EQ(Read(plan->processes[0]).endpoint, "127.0.0.12:36200");
  EXPECT_EQ(Read(plan->processes[0]).index, 1);
  EXPECT_EQ(Read(plan->processes[1]).index, 1);
  EXPECT_EQ(Read(plan->processes[2]).index, 2);
  EXPECT_EQ(Read(plan->processes[2]).workers, 3);
  EXPECT_EQ(plan->processes[2].log, "log/workerlog.2");
  const auto both = PlanLists(args, OwnAddress({"127.0.0.11", "127.0.0.12"}));
  ASSERT_TRUE(both.ok());
  EXPECT_THAT(both->processes, SizeIs(5));
  EXPECT_EQ(both->workers_here, WorkersHere::kAll);
}

TEST(JobPlan, MetricsPortsCountOverTheWholeJob) {
  LaunchArgs args = Lists("127.0.0.11:36200,127.0.0.12:36200", "127.0.0.11:36100,127.0.0.12:36100");
  const auto port = [](const PlannedProcess& process) { return Map(process)["REGATTA_METRICS_PORT"]; };
  const auto none = PlanLists(args, OwnAddress({"127.0.0.12"}));
  EXPECT_EQ(port(none->processes[0]), "");
  args.metrics_port = 9100;
  const auto plan = PlanLists(args, OwnAddress({"127.0.0.12"}));
  EXPECT_EQ(port(plan->processes[0]), "9101");  // server 1
  EXPECT_EQ(port(plan->processes[1]), "9103");  // worker 1, behind two servers and worker 0
  EXPECT_EQ(plan->processes[1].metrics_port, 9103);
  args.metrics_port = 0;
  const auto any = PlanLists(args, OwnAddress({"127.0.0.12"}));
  EXPECT_EQ(port(any->processes[1]), "0");
  args.metrics_port = 65'532;
  EXPECT_EQ(CheckMetricsPorts(args), absl::OkStatus());
  args.metrics_port = 65'533;
  EXPECT_THAT(std::string(CheckMetricsPorts(args).message()), HasSubstr("65533"));
}

TEST(JobPlan, ANodeOutsideTheListsIsAnErrorThatSaysWhatItIs) {
  const auto plan = PlanLists(Lists("10.0.0.1:1", "10.0.0.1:2"), OwnAddress({"127.0.0.1", "10.0.0.9"}));
  EXPECT_THAT(std::string(plan.status().message()),
              AllOf(HasSubstr("10.0.0.1:1"), HasSubstr("10.0.0.9"), HasSubstr("POD_IP")));
}

TEST(JobPlan, WorkersThatCanBeStartedAgainAreToldSo) {
  LaunchArgs args;
  args.server_num = args.worker_num = 1;
  args.command = {"train", "-m", "c.yaml"};
  const auto returns = [&] {
    const JobPlan plan = PlanLocal(args, cluster::ParseEndpoints("127.0.0.1:11").value());
    EXPECT_EQ(Read(plan.processes[1]).workers_return, args.workers_return());
    return args.workers_return();
  };
  EXPECT_FALSE(returns());
  args.max_restarts = 3;
  EXPECT_FALSE(returns()) << "the servers keep no log";
  args.data_dir = "d";
  EXPECT_TRUE(returns());
  args.command = {"c.yaml"};
  EXPECT_TRUE(returns());
  args.worker_loss.policy = base::LossPolicy::kShrink;
  EXPECT_FALSE(returns()) << "the others go on without it";
  args.worker_loss.policy = base::LossPolicy::kAwait;
  args.command = {"./own_program"};
  EXPECT_TRUE(returns());
}

TEST(JobPlan, ATrustedNetworkIsPassedOn) {
  LaunchArgs args = Lists("10.0.0.1:1", "10.0.0.1:2");
  args.access.network = cluster::Network::kTrusted;
  const auto plan = PlanLists(args, OwnAddress({"10.0.0.1"}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Read(plan->processes[0]).network, cluster::Network::kTrusted);
}

TEST(OwnAddress, PodIpWinsAndLoopbackIsOneAddressOnly) {
  const auto pod = OwnAddress::Find("127.0.0.11");
  ASSERT_TRUE(pod.ok());
  EXPECT_TRUE(pod->Owns({"127.0.0.11", 1}));
  EXPECT_FALSE(pod->Owns({"127.0.0.1", 1}));
  const auto machine = OwnAddress::Find(std::nullopt);
  ASSERT_TRUE(machine.ok());
  EXPECT_TRUE(machine->Owns({"127.0.0.1", 1}));
  EXPECT_TRUE(machine->Owns({"localhost", 1}));
  EXPECT_FALSE(machine->Owns({"127.0.0.11", 1}));
  EXPECT_FALSE(OwnAddress::Find("not an address").ok());
}

}  // namespace
}  // namespace regatta::launch
