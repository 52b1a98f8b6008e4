// Slot-text parsing on one core against reading the same file in 64 KiB pieces and counting its lines with memchr.
// data_bench [--quick]
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "bench/measure.h"
#include "data/dataset_factory.h"
#include "data/generator.h"
#include "data/parser/slot_text.h"
#include "data/source/line_source.h"

namespace regatta::data {
namespace {

constexpr uint64_t kBytesPerSample = 420;

void PinToOneCore() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(sched_getcpu(), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
}

uint64_t CountLines(const std::string& path) {
  std::vector<char> buffer(64 << 10);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  uint64_t lines = 0;
  for (ssize_t n; (n = read(fd, buffer.data(), buffer.size())) > 0;) {
    const char* p = buffer.data();
    const char* const end = p + n;
    while ((p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)))) != nullptr) {
      ++lines;
      if (++p == end) break;
    }
  }
  close(fd);
  return lines;
}

uint64_t ParseFile(const std::string& path, Parser& parser, LineSource& lines, SampleBlock& block) {
  uint64_t samples = 0;
  lines.Open(OpenPlain(path).value());
  LineBlock text;
  while (lines.Next(&text).value()) {
    block.Clear();
    parser.Parse(text.text, block);
    samples += static_cast<uint64_t>(block.size);
  }
  return samples;
}

// Reader thread, merge and Next on the same core.
uint64_t ReadDataset(const std::string& path) {
  DatasetOptions options;
  options.files = {path};
  options.format = "slot_text";
  options.schema = CriteoSchema();
  options.batch_size = 1000;
  auto dataset = MakeDataset(options).value();
  uint64_t samples = 0;
  if (!dataset->BeginPass({}).ok()) return 0;
  while (auto batch = dataset->Next().value()) {
    samples += static_cast<uint64_t>(batch->size);
    dataset->Recycle(std::move(batch));
  }
  return dataset->EndPass().ok() ? samples : 0;
}

int Main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  const uint64_t megabytes = quick ? 32 : 64;
  const int rounds = quick ? 5 : 9;
  char folder[] = "/tmp/regatta_data_bench.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  GeneratorOptions generator;
  generator.out = folder;
  generator.samples = megabytes * 1'000'000 / kBytesPerSample;
  generator.truth.ids = 30'000;
  if (!Generate(generator, nullptr).ok()) return 1;
  const std::string path = std::string(folder) + "/train/part-00000";
  const double gigabytes = static_cast<double>(base::ReadFile(path).value().size()) * 1e-9;

  PinToOneCore();
  auto parser = MakeSlotTextParser(CriteoSchema()).value();
  LineSource lines(DatasetOptions().block_bytes, DatasetOptions().max_line_bytes);
  SampleBlock block;
  uint64_t samples = 0, counted = 0, batched = 0;
  auto parse = [&] { return gigabytes / bench::Seconds([&] { samples = ParseFile(path, *parser, lines, block); }); };
  auto count = [&] { return gigabytes / bench::Seconds([&] { counted = CountLines(path); }); };
  auto dataset = [&] { return gigabytes / bench::Seconds([&] { batched = ReadDataset(path); }); };
  const bool reached = bench::Print(bench::Compare("slot-text parsing", "GB/s", 0.25, rounds, parse, count));
  // What the reader thread, the merge and Next add to the parsing.
  bench::Print(bench::Compare("queue dataset over parsing", "GB/s", 0.75, rounds, dataset, parse));
  if (samples != counted || batched != counted) {
    std::printf("parsed %lu, batched %lu of %lu lines\n", samples, batched, counted);
    return 1;
  }
  return base::RemoveTree(folder).ok() && reached ? 0 : 1;
}

}  // namespace
}  // namespace regatta::data

int main(int argc, char** argv) { return regatta::data::Main(argc, argv); }
