// Regatta's side of the comparisons in bench/peers: one workload, run a pass at a time on one core whenever a line
// arrives on stdin, so that scripts/bench can alternate it with a peer that does the same. Prints
// RATE<TAB>samples/s<TAB>CPU seconds a million samples.
//   regatta_rounds write ctr_dnn|multihot|uniform PATH SAMPLES    the data: PATH.txt, PATH.bin
//   regatta_rounds ctr_dnn_text|ctr_dnn_memory|multihot PATH
//   regatta_rounds ctr_dnn_async PATH                     a server and a worker of one thread; on any core
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "bench/e2e/workload.h"
#include "bench/rounds.h"
#include "bench/server_process.h"
#include "worker/blas.h"

namespace regatta::bench {
namespace {

constexpr uint64_t kMultihotRows = 2'000'000;

int Write(const std::string& work, const std::string& path, int samples) {
  Shape shape;  // uniform: a million ids, hardly any of them twice in a batch
  if (work == "multihot") shape = MultihotShape(samples, kMultihotRows);
  if (work == "ctr_dnn") shape = CtrDnnShape(samples);
  shape.samples = samples;
  WriteSlotText(path + ".txt", shape, 1);
  WriteBinary(path + ".bin", shape, 1);
  return 0;
}

// Passes of the job; `others` as ServeRounds has it.
void Serve(
    Workload& job, const std::function<double()>& others = [] { return 0.0; }) {
  ServeRounds(
      [&] {
        job.Pass();
        return job.samples_a_pass();
      },
      others);
}

int Rounds(const std::string& work, const std::string& path) {
  PinTo(1);
  TemporaryFolder folder;
  const std::string data = path + ".txt";
  const std::string yaml = work == "multihot"
                               ? MultihotYaml(data, 1)
                               : CtrDnnYaml(data, 1, work == "ctr_dnn_memory" ? Reading::kInMemory : Reading::kStream);
  Workload job(folder.path(), yaml, 1);
  if (work == "multihot") job.Fill(kMultihotRows);
  Serve(job);
  return 0;
}

// A worker with a server of its own; the processor time is both processes'.
int AsyncRounds(const std::string& path) {
  ServerProcess server(1);
  TemporaryFolder folder;
  Workload job(folder.path(), InMode("async", CtrDnnYaml(path + ".txt", 1)), 1, WorkerOf(server.endpoint(), 0, 1));
  Serve(job, [&] { return server.CpuSeconds(); });
  return 0;
}

int Main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "write") == 0) return Write(argv[2], argv[3], std::stoi(argv[4]));
  if (argc == 3 && std::strcmp(argv[1], "ctr_dnn_async") == 0) return AsyncRounds(argv[2]);
  if (argc == 3) return Rounds(argv[1], argv[2]);
  std::fprintf(stderr, "regatta_rounds: called by scripts/bench --peers; its source says how\n");
  return 2;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) {
  regatta::worker::UseKernelsOfThisCpu(argv);
  regatta::worker::SetLibraryDefaults();
  return regatta::bench::Main(argc, argv);
}
