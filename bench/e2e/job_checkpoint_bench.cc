// What checkpoints of a job cost its training: a durable server, and a worker that reads the server's snapshot and
// writes it while it trains.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "bench/e2e/workload.h"
#include "bench/measure.h"
#include "bench/server_process.h"

namespace regatta::bench {
namespace {

bool Main(Extent extent) {
  const bool quick = extent == Extent::kQuick;
  const int samples = quick ? 60'000 : 200'000, rounds = quick ? 3 : 5;
  const double period = quick ? 10 : 30;
  const uint64_t rows = quick ? 1'000'000 : 3'000'000;
  PinTo(2);
  TemporaryFolder folder;
  const std::string data = folder.path() + "/train.txt", filled = folder.path() + "/filled";
  WriteSlotText(data, CtrDnnShape(samples), 1);
  {
    Workload alone(folder.path(), CtrDnnYaml(data, 1), 1);
    alone.Fill(rows);
    alone.SaveTo(filled);
  }
  ServerProcess server(1, {"--data_dir=" + folder.path() + "/server", "--load=" + filled});
  Workload worker(folder.path(), InMode("async", CtrDnnYaml(data, 1)), 1, WorkerOf(server.endpoint(), 0, 1));
  worker.TakeCheckpoints(folder.path() + "/saves", period);
  // A round of training with them begins when the last one is a period old, and so with one.
  worker.TrainFor(period, Workload::Checkpoints::kNone);
  const int before = worker.checkpoints();
  const Row row = Compare(
      absl::StrFormat("server with %dM rows + worker (async): a checkpoint every %.0f s / none%s", rows / 1'000'000,
                      period, quick ? " (30 s and 3M rows without --quick)" : ""),
      "samples/s", 0.9, rounds, [&] { return worker.TrainFor(period, Workload::Checkpoints::kTaken); },
      [&] { return worker.TrainFor(period, Workload::Checkpoints::kNone); });
  std::printf("%d checkpoints in %d rounds\n", worker.checkpoints() - before, rounds);
  return Print(row) && worker.checkpoints() - before >= rounds;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::RunBench(argc, argv, &regatta::bench::Main); }
