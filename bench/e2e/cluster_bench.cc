// CTR-DNN with servers against the embedded tables, on the same cores: what the cluster costs where it gives nothing.
#include <glog/logging.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "bench/e2e/workload.h"
#include "bench/measure.h"
#include "launch/port_lease.h"

namespace regatta::bench {
namespace {

// regatta-pserver as a process of its own, on the cores that this one is pinned to.
class ServerProcess {
 public:
  explicit ServerProcess(int workers) {
    auto lease = launch::PortLease::Take();
    CHECK(lease.ok()) << lease.status();
    const int port = lease->port();
    lease->Release();
    endpoint_ = "127.0.0.1:" + std::to_string(port);
    const std::string program =
        (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin" / "regatta-pserver")
            .string();
    const std::vector<std::string> words{program, "--port=" + std::to_string(port), "--ports_num=1",
                                         "--ports_num_for_sparse=0",
                                         "--num_gradient_servers=" + std::to_string(workers)};
    pid_ = fork();
    CHECK_GE(pid_, 0);
    if (pid_ != 0) return;
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    setenv("GLOG_minloglevel", "1", 1);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  ~ServerProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }

  cluster::ClusterSpec PlaceOf(int worker, int workers) const {
    cluster::ClusterSpec place;
    place.role = cluster::Role::kWorker;
    place.servers = {endpoint_};
    place.workers = workers;
    place.index = worker;
    return place;
  }

 private:
  std::string endpoint_;
  pid_t pid_ = -1;
};

std::string Yaml(const std::string& data, int threads, const std::string& mode) {
  std::string yaml = CtrDnnYaml(data, threads);
  return yaml.insert(yaml.find('{') + 1, "sync_mode: " + mode + ", ");
}

bool Async(const std::string& data, const std::string& folder, int rounds, int cores) {
  PinTo(cores);
  ServerProcess server(1);
  Workload alone(folder, CtrDnnYaml(data, cores), cores);
  Workload worker(folder, Yaml(data, cores, "async"), cores, server.PlaceOf(0, 1));
  alone.Pass();
  worker.Pass();
  const uint64_t before = worker.wire_bytes();
  const Row row = Compare(
      cores == 1 ? "server + worker (async) on one core / embedded on one core"
                 : "server + worker of 2 threads (async) on two cores / embedded, 2 threads",
      "samples/s", 0.80, rounds, [&] { return worker.Pass(); }, [&] { return alone.Pass(); });
  const double samples = static_cast<double>(rounds) * static_cast<double>(worker.samples_a_pass());
  std::printf("async, %d threads: %.0f bytes on the wire a sample\n", cores,
              static_cast<double>(worker.wire_bytes() - before) / samples);
  return Print(row);
}

bool Sync(const std::string& data, const std::string& folder, int rounds) {
  PinTo(2);
  ServerProcess server(2);
  Workload alone(folder, CtrDnnYaml(data, 2), 2);
  std::vector<std::unique_ptr<Workload>> workers(2);
  const auto both = [&](const std::function<void(int)>& fn) {
    std::thread other([&] { fn(1); });
    fn(0);
    other.join();
  };
  TemporaryFolder folders[2];
  both([&](int i) {
    workers[i] = std::make_unique<Workload>(folders[i].path(), Yaml(data, 1, "sync"), 1, server.PlaceOf(i, 2));
  });
  const auto pass = [&] {
    double samples = 0;
    const double seconds = Seconds([&] { both([&](int i) { workers[i]->Pass(); }); });
    for (const auto& worker : workers) samples += static_cast<double>(worker->samples_a_pass());
    return samples / seconds;
  };
  alone.Pass();
  pass();
  const Row row = Compare("server + 2 workers (sync) on two cores / embedded, 2 threads", "samples/s", 0.70, rounds,
                          pass, [&] { return alone.Pass(); });
  both([&](int i) { workers[i].reset(); });
  return Print(row);
}

bool Main(Extent extent) {
  const bool quick = extent == Extent::kQuick;
  const int samples = quick ? 60'000 : 200'000, rounds = quick ? 5 : 11;
  TemporaryFolder folder;
  const std::string data = folder.path() + "/train.txt";
  WriteSlotText(data, CtrDnnShape(samples), 1);
  bool ok = Async(data, folder.path(), rounds, 1);
  ok &= Async(data, folder.path(), rounds, 2);
  ok &= Sync(data, folder.path(), rounds);
  return ok;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::RunBench(argc, argv, &regatta::bench::Main); }
