// MULTIHOT: 26 slots of 20 log-uniform ids, so that looking rows up and updating them is most of the work. Two threads
// against one, and a table of 60M rows against one of 2M. bench/peers has the same work for fbgemm and PyTorch.
#include <unistd.h>

#include <fstream>

#include "bench/e2e/workload.h"
#include "bench/measure.h"

namespace regatta::bench {
namespace {

constexpr uint64_t kRows = 2'000'000, kManyRows = 60'000'000;
constexpr double kIdsASample = 26 * 20;

double MegaIds(double samples_a_second) { return samples_a_second * kIdsASample / 1e6; }

// A job over a table that holds every row of its data's vocabulary, warmed up by a pass.
std::unique_ptr<Workload> Make(const TemporaryFolder& folder, int samples, uint64_t rows, int threads) {
  const std::string data = folder.path() + "/rows" + std::to_string(rows) + ".txt";
  if (access(data.c_str(), R_OK) != 0) WriteSlotText(data, MultihotShape(samples, rows), rows);
  auto job = std::make_unique<Workload>(folder.path(), MultihotYaml(data, threads), threads);
  job->Fill(rows);
  job->Pass();
  return job;
}

bool TwoThreads(const TemporaryFolder& folder, int samples, int rounds) {
  PinTo(1);
  const auto one = Make(folder, samples, kRows, 1);
  PinTo(2);
  const auto two = Make(folder, samples, kRows, 2);
  return Print(Compare(
      "MULTIHOT 2 threads over 1", "M ids/s", 1.8, rounds,
      [&] {
        PinTo(2);
        return MegaIds(two->Pass());
      },
      [&] {
        PinTo(1);
        return MegaIds(one->Pass());
      }));
}

// As /proc/meminfo says; 0 where it does not.
uint64_t AvailableMemory() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("MemAvailable:", 0) == 0) return std::stoull(line.substr(13)) * 1024;
  return 0;
}

bool Growth(const TemporaryFolder& folder, int samples, int rounds) {
  constexpr uint64_t kNeeded = uint64_t{9} << 30;  // 60M rows, their index, and what filling the table holds besides
  if (const uint64_t available = AvailableMemory(); available < kNeeded) {
    std::printf("SKIPPED\tMULTIHOT 60M rows over 2M rows\tneeds %.0f GB of memory, %.1f GB are available\n",
                static_cast<double>(kNeeded) / 1e9, static_cast<double>(available) / 1e9);
    return true;
  }
  PinTo(1);
  const auto little = Make(folder, samples, kRows, 1), big = Make(folder, samples, kManyRows, 1);
  return Print(Compare(
      "MULTIHOT 60M rows over 2M rows", "M ids/s", 0.6, rounds, [&] { return MegaIds(big->Pass()); },
      [&] { return MegaIds(little->Pass()); }));
}

bool Main(Extent extent) {
  const bool quick = extent == Extent::kQuick;
  const int samples = quick ? 20'000 : 50'000, rounds = quick ? 5 : 11;
  TemporaryFolder folder;
  bool ok = TwoThreads(folder, samples, rounds);
  ok &= Growth(folder, samples, rounds);
  return ok;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::RunBench(argc, argv, &regatta::bench::Main); }
