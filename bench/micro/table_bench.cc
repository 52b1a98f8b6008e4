// Tables against the machine: pull and push against a software-prefetched gather of 64-byte rows, push during a
// snapshot against push, memory against the bytes stored, dense Adam printed. Everything on one core. --quick measures
// fewer rounds.
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>
#include <vector>

#include "base/grouped_keys.h"
#include "base/random.h"
#include "bench/measure.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta {
namespace {

constexpr int kDim = 16;
constexpr size_t kBatch = 26'000;
constexpr uint64_t kRowBytes = 8 + 2 * kDim * sizeof(float);  // key, weights, std_adagrad's state

void PinToOneCore() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(sched_getcpu(), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "table_bench: %s\n", std::string(value.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

void OrDie(const absl::Status& status) {
  if (!status.ok()) OrDie(absl::StatusOr<int>(status));
}

std::unique_ptr<table::SparseTable> MakeTable() {
  table::SparseTableConfig config;
  config.name = "embedding";
  config.dim = kDim;
  config.rule.name = "std_adagrad";
  return OrDie(table::SparseTable::Create(config));
}

// Key i of the table: any 64-bit pattern, cheap to name again.
base::Key KeyAt(uint64_t i) { return base::Mix64(i ^ 0x5eed); }

void Push(table::SparseTable& table, const base::GroupedKeys& keys, const std::vector<float>& grads) {
  base::TableGrads push;
  push.keys = keys.view();
  push.grads = {grads.data(), kDim, kDim};
  OrDie(table.Push(push, {.samples = 1000}));
}

struct Pause {
  double wall = 0;
  double cpu = 0;  // what is left of it when the machine is busy with others
};

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Adds rows [begin, end); the longest single push in seconds.
Pause Grow(table::SparseTable& table, uint64_t begin, uint64_t end) {
  const std::vector<float> grads(kBatch * kDim, 1.0f);
  Pause longest;
  while (begin < end) {
    std::vector<base::Key> keys;
    for (; begin < end && keys.size() < kBatch; ++begin) keys.push_back(KeyAt(begin));
    const base::GroupedKeys grouped(std::move(keys));
    const double start = CpuSeconds();
    longest.wall = std::max(longest.wall, bench::Seconds([&] { Push(table, grouped, grads); }));
    longest.cpu = std::max(longest.cpu, CpuSeconds() - start);
  }
  return longest;
}

uint64_t ResidentBytes() {
  uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// 64-byte rows on huge pages, gathered with prefetch: the bound.
class Gather {
 public:
  explicit Gather(uint64_t rows) : bytes_(rows * kStride * sizeof(float)) {
    const uint64_t huge = uint64_t{2} << 20;
    mapped_ = bytes_ + huge;
    void* p = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) OrDie(absl::ResourceExhaustedError("no memory for the bound's array"));
    map_ = p;
    rows_ = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(p) + huge - 1) / huge * huge);
    madvise(rows_, bytes_, MADV_HUGEPAGE);
    std::vector<double> touches;
    for (uint64_t at = 0; at + huge <= bytes_; at += huge) {
      touches.push_back(bench::Seconds([&] { std::memset(reinterpret_cast<char*>(rows_) + at, 1, huge); }));
    }
    std::printf("first touch of a huge page by this system: %.2f ms\n", bench::Median(touches) * 1e3);
  }
  ~Gather() { munmap(map_, mapped_); }

  [[gnu::noinline]] void Run(const std::vector<uint32_t>& ids, float* out) const {
    const size_t n = ids.size();
    for (size_t i = 0; i < n; ++i) {
      if (i + kAhead < n) __builtin_prefetch(rows_ + uint64_t{ids[i + kAhead]} * kStride);
      std::memcpy(out + i * kStride, rows_ + uint64_t{ids[i]} * kStride, kStride * sizeof(float));
    }
  }

 private:
  static constexpr uint64_t kStride = 16;
  static constexpr size_t kAhead = 32;
  uint64_t bytes_;
  uint64_t mapped_;
  void* map_;
  float* rows_;
};

// What pushes cost while a snapshot's writer has not come yet: the first ones, which keep every row's old bytes, and
// later ones of the same rows; and what telling changed rows costs at all times.
void PushDuringSnapshot(table::SparseTable& table, const std::string& size, int rounds,
                        const std::function<double()>& push) {
  const auto first = [&] {
    OrDie(table.BeginSnapshot(uint64_t{1} << 30));
    const double speed = push();
    OrDie(table.EndSnapshot(table::SnapshotEnd::kAbandoned));
    return speed;
  };
  const auto later = [&] {
    OrDie(table.BeginSnapshot(uint64_t{1} << 30));
    push();
    const double speed = push();
    OrDie(table.EndSnapshot(table::SnapshotEnd::kAbandoned));
    return speed;
  };
  const auto tracked = [&] {
    table.TrackChanges(table::Tracking::kOn);
    const double speed = push();
    table.TrackChanges(table::Tracking::kOff);
    return speed;
  };
  bench::Print(
      bench::Compare("sparse push, keeping old rows for a snapshot, " + size, "M rows/s", 0.3, rounds, first, push));
  bench::Print(bench::Compare("sparse push, rows kept already, " + size, "M rows/s", 0.8, rounds, later, push));
  bench::Print(bench::Compare("sparse push, changes tracked, " + size, "M rows/s", 0.85, rounds, tracked, push));
}

void LookupRows(uint64_t rows, int rounds) {
  auto table = MakeTable();
  const Pause pause = Grow(*table, 0, rows);
  constexpr int kBatches = 24;
  base::Rng rng(1);
  std::vector<base::GroupedKeys> batches;
  std::vector<std::vector<uint32_t>> ids(kBatches);
  for (int b = 0; b < kBatches; ++b) {
    std::vector<base::Key> keys;
    for (size_t i = 0; i < kBatch; ++i) {
      keys.push_back(KeyAt(rng.Below(rows)));
      ids[b].push_back(static_cast<uint32_t>(rng.Below(rows)));
    }
    batches.emplace_back(std::move(keys));
  }
  const Gather gather(rows);
  std::vector<float> out(kBatch * kDim);
  std::vector<float> grads(kBatch * kDim);
  for (float& g : grads) g = static_cast<float>(rng.Uniform() - 0.5);

  const auto speed = [](double seconds) { return kBatches * static_cast<double>(kBatch) / seconds / 1e6; };
  const auto bound = [&] {
    return speed(bench::Seconds([&] {
      for (const auto& batch : ids) gather.Run(batch, out.data());
    }));
  };
  const auto pull = [&] {
    return speed(bench::Seconds([&] {
      for (const auto& batch : batches) {
        OrDie(table->Pull(batch.view(), base::StepKind::kTrain, {out.data(), kDim, kDim}));
      }
    }));
  };
  const auto push = [&] {
    return speed(bench::Seconds([&] {
      for (const auto& batch : batches) Push(*table, batch, grads);
    }));
  };
  const std::string size = std::to_string(rows / 1'000'000) + "M rows";
  std::printf("longest push of %zu new rows while growing to %s: %.2f ms (%.2f ms of CPU)\n", kBatch, size.c_str(),
              pause.wall * 1e3, pause.cpu * 1e3);
  bench::Print(bench::Compare("sparse pull, " + size, "M rows/s", 0.30, rounds, pull, bound));
  bench::Print(bench::Compare("sparse push std_adagrad, " + size, "M rows/s", 0.20, rounds, push, bound));
  PushDuringSnapshot(*table, size, rounds, push);
}

void Memory() {
  constexpr uint64_t kFirst = 1'000'000;
  constexpr uint64_t kLast = 16'000'000;
  constexpr uint64_t kSteps = 30;
  auto table = MakeTable();
  std::vector<double> bytes;
  Pause longest;
  const uint64_t before = ResidentBytes();
  uint64_t rows = 0;
  double mean = 0;
  for (uint64_t i = 0; i <= kSteps; ++i) {
    const uint64_t target = kFirst + (kLast - kFirst) * i / kSteps;
    const Pause pause = Grow(*table, rows, target);
    longest = {std::max(longest.wall, pause.wall), std::max(longest.cpu, pause.cpu)};
    rows = target;
    bytes.push_back(static_cast<double>(ResidentBytes() - before) / static_cast<double>(rows));
    mean += bytes.back() / (kSteps + 1);
  }
  std::printf(
      "bytes a row: %.1f at 1M rows, %.1f at 16M, %.1f … %.1f on the way; longest push %.2f ms (%.2f ms of CPU)\n",
      bytes.front(), bytes.back(), *std::min_element(bytes.begin(), bytes.end()),
      *std::max_element(bytes.begin(), bytes.end()), longest.wall * 1e3, longest.cpu * 1e3);
  const double stored = static_cast<double>(kRowBytes);
  bench::Print(
      {"table memory per row, 1M to 16M rows", "bytes", mean, stored, mean / stored, 1.35, bench::Better::kLower});
}

void DenseAdam() {
  table::DenseTableConfig config;
  constexpr int64_t kElements = 430'000;
  config.parameters = {{"w", {kElements}, {"uniform", -0.1, 0.1}}};
  config.rule.name = "adam";
  auto table = OrDie(table::DenseTable::Create(config));
  std::vector<float> grads(kElements);
  base::Rng rng(2);
  for (float& g : grads) g = static_cast<float>(rng.Uniform() - 0.5);
  const base::DenseGrad piece{0, grads};
  std::vector<double> seconds;
  for (int i = 0; i < 200; ++i) {
    seconds.push_back(bench::Seconds([&] { OrDie(table->Push({&piece, 1}, {.samples = 1000})); }));
  }
  std::printf("dense adam of %ld parameters: %.3f ms\n", static_cast<long>(kElements), bench::Median(seconds) * 1e3);
}

int Run(int argc, char** argv) {
  bool quick = false;
  std::string_view only;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--quick") {
      quick = true;
    } else if (arg == "lookup" || arg == "memory" || arg == "dense") {
      only = arg;
    } else {
      std::fprintf(stderr, "table_bench [--quick] [lookup | memory | dense]\n");
      return 2;
    }
  }
  PinToOneCore();
  if (only.empty() || only == "memory") Memory();
  if (only.empty() || only == "lookup") LookupRows(10'000'000, quick ? 9 : 31);
  if (only.empty() || only == "dense") DenseAdam();
  return 0;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) { return regatta::Run(argc, argv); }
