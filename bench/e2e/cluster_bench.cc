// CTR-DNN with servers against the embedded tables, on the same cores: what the cluster costs where it gives nothing,
// and what TLS costs on top.
#include <thread>

#include "bench/e2e/workload.h"
#include "bench/measure.h"
#include "bench/server_process.h"
#include "server/credentials_folder.h"

namespace regatta::bench {
namespace {

bool Async(const std::string& data, const std::string& folder, int rounds, int cores) {
  PinTo(cores);
  ServerProcess server(1);
  Workload alone(folder, CtrDnnYaml(data, cores), cores);
  Workload worker(folder, InMode("async", CtrDnnYaml(data, cores)), cores, WorkerOf(server.endpoint(), 0, 1));
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
    workers[i] = std::make_unique<Workload>(folders[i].path(), InMode("sync", CtrDnnYaml(data, 1)), 1,
                                            WorkerOf(server.endpoint(), i, 2));
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

// What TLS costs: both jobs are alike but for it.
bool Guarded(const std::string& data, const std::string& folder, int rounds) {
  PinTo(2);
  cluster::CredentialsArgs args;
  args.folder = folder + "/credentials";
  args.hosts = {"127.0.0.1"};
  CHECK_EQ(server::MakeCredentials(args), absl::OkStatus());
  const cluster::CredentialFiles files = server::FilesIn(args.folder);
  ServerProcess open(1), guarded(1, cluster::CredentialFlags(files));
  cluster::ClusterSpec place = WorkerOf(guarded.endpoint(), 0, 1);
  place.network = cluster::Network::kGuarded;
  place.credentials = cluster::LoadCredentials(files).value();
  TemporaryFolder folders[2];
  Workload clear(folders[0].path(), InMode("async", CtrDnnYaml(data, 2)), 2, WorkerOf(open.endpoint(), 0, 1));
  Workload tls(folders[1].path(), InMode("async", CtrDnnYaml(data, 2)), 2, place);
  clear.Pass();
  tls.Pass();
  return Print(Compare(
      "server + worker of 2 threads (async) over TLS with a token / in the clear", "samples/s", 0.75, rounds,
      [&] { return tls.Pass(); }, [&] { return clear.Pass(); }));
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
  ok &= Guarded(data, folder.path(), rounds);
  return ok;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::RunBench(argc, argv, &regatta::bench::Main); }
