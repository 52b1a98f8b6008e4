// CTR-DNN from text files against the same network's matrix products, on one core and on two, and with a large table.
#include "bench/e2e/workload.h"
#include "bench/measure.h"

namespace regatta::bench {
namespace {

const std::vector<int64_t> kLayers{273, 400, 400, 400, 1};

bool OneCore(const std::string& data, const std::string& folder, int rounds) {
  PinTo(1);
  Workload job(folder, CtrDnnYaml(data, 1), 1);
  Gemms gemms(1000, kLayers);
  job.Pass();
  return Print(Compare(
      "CTR-DNN end to end, one core / its GEMMs", "samples/s", 0.80, rounds, [&] { return job.Pass(); },
      [&] { return gemms.Run(60, 1); }));
}

// The ratio of two scalings, each 2 threads on two cores over 1 thread pinned to one, measured round by round.
bool TwoThreads(const std::string& data, const std::string& folder, int rounds) {
  Workload one(folder, CtrDnnYaml(data, 1), 1), two(folder, CtrDnnYaml(data, 2), 2);
  Gemms gemms(1000, kLayers);
  std::vector<double> thing, bound, ratio;
  for (int i = 0; i <= rounds; ++i) {
    PinTo(1);
    const double job_one = one.Pass(), gemm_one = gemms.Run(60, 1);
    PinTo(2);
    const double job_two = two.Pass(), gemm_two = gemms.Run(60, 2);
    if (i == 0) continue;
    thing.push_back(job_two / job_one);
    bound.push_back(gemm_two / gemm_one);
    ratio.push_back(thing.back() / bound.back());
  }
  return Print({"CTR-DNN 2 threads over 1 / the GEMMs' own 2:1", "times", Median(thing), Median(bound), Median(ratio),
                0.93, Better::kHigher});
}

bool Growth(int samples, int rounds, uint64_t small, uint64_t large) {
  PinTo(1);
  TemporaryFolder small_folder, large_folder;
  Shape shape;
  shape.samples = samples;
  const auto make = [&](const TemporaryFolder& folder, uint64_t rows) {
    shape.vocabulary = rows;
    WriteSlotText(folder.path() + "/train.txt", shape, rows);
    auto job = std::make_unique<Workload>(folder.path(), CtrDnnYaml(folder.path() + "/train.txt", 1), 1);
    job->Fill(rows);
    job->Pass();
    return job;
  };
  const auto little = make(small_folder, small), big = make(large_folder, large);
  return Print(Compare(
      "CTR-DNN with " + std::to_string(large / 1'000'000) + "M rows over " + std::to_string(small / 1'000'000) +
          "M, uniform ids",
      "samples/s", 0.8, rounds, [&] { return big->Pass(); }, [&] { return little->Pass(); }));
}

bool Main(Extent extent) {
  const bool quick = extent == Extent::kQuick;
  const int samples = quick ? 60'000 : 200'000, rounds = quick ? 5 : 11;
  TemporaryFolder folder;
  const std::string data = folder.path() + "/train.txt";
  WriteSlotText(data, CtrDnnShape(samples), 1);
  bool ok = OneCore(data, folder.path(), rounds);
  ok &= TwoThreads(data, folder.path(), rounds);
  ok &= Growth(samples, rounds, 1'000'000, 16'000'000);
  return ok;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::RunBench(argc, argv, &regatta::bench::Main); }
