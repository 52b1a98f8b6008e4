// Saving and loading a table against write() + fsync() and read() of one file with the same bytes.
// checkpoint_bench [--quick] [folder]: 2M rows × 32 floats (256 MB); without --quick 8M rows. Files are dropped from
// the page cache before they are read, as after a restart, for thing and bound alike; the warm figures follow. Then the
// memory of a model that is loaded for inference, against the same model with the optimizer's state.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "base/resident_memory.h"
#include "bench/measure.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/local_model.h"

namespace regatta::bench {
namespace {

constexpr size_t kPiece = 1 << 20;

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "checkpoint_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

table::ModelConfig ConfigOf(int dim, const char* rule) {
  table::ModelConfig config;
  table::SparseTableConfig& table = config.sparse.emplace_back();
  table.name = "embedding";
  table.dim = dim;
  table.rule.name = rule;
  return config;
}

std::unique_ptr<table::SparseTable> MakeTable(const table::ModelConfig& model = ConfigOf(16, "std_adagrad")) {
  const table::SparseTableConfig& config = model.sparse[0];
  auto table = table::SparseTable::Create(config);
  Must(table.status());
  return *std::move(table);
}

void Fill(table::SparseTable& table, uint64_t rows) {
  std::vector<std::vector<base::Key>> keys(base::kVirtualShards);
  for (uint64_t i = 0; i < rows; ++i) {
    const base::Key key = base::RandomBits(1, i);
    keys[base::ShardOf(key)].push_back(key);
  }
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) {
    std::vector<float> floats(keys[s].size() * static_cast<size_t>(table.row_width()));
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = base::UniformFloat(base::RandomBits(s, i));
    Must(table.Load(s, keys[s], floats));
  }
}

enum class Cache { kCold, kWarm };

void PrepareCache(const std::string& path, Cache cache) {
  std::vector<char> piece(kPiece);
  const int fd = open(path.c_str(), O_RDONLY);
  if (cache == Cache::kCold) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  if (cache == Cache::kWarm)
    while (read(fd, piece.data(), kPiece) > 0) continue;
  close(fd);
}

void WriteAndSync(const std::string& path, uint64_t bytes) {
  const std::vector<char> piece(kPiece, 'x');
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  for (uint64_t done = 0; done < bytes; done += kPiece)
    if (write(fd, piece.data(), std::min<uint64_t>(kPiece, bytes - done)) < 0) std::exit(1);
  if (fsync(fd) != 0) std::exit(1);
  close(fd);
}

void ReadWhole(const std::string& path) {
  std::vector<char> piece(kPiece);
  const int fd = open(path.c_str(), O_RDONLY);
  while (read(fd, piece.data(), kPiece) > 0) continue;
  close(fd);
}

class Bench {
 public:
  Bench(const std::string& folder, uint64_t rows, int rounds)
      : save_(folder + "/save"), file_(folder + "/file"), rounds_(rounds), table_(MakeTable()), loaded_(MakeTable()) {
    Fill(*table_, rows);
    Must(Save());
    bytes_ = checkpoint::CheckpointReader::Open(save_)->manifest().TotalBytes();
    std::printf("%llu rows of %d floats, %.0f MB on disk\n", static_cast<unsigned long long>(rows), table_->row_width(),
                static_cast<double>(bytes_) / 1e6);
  }

  bool Run() {
    bool reached = Print(Compare(
        "checkpoint save", "MB/s", 0.5, rounds_, [&] { return Speed([&] { Must(Save()); }, save_); },
        [&] { return Speed([&] { WriteAndSync(file_, bytes_); }, file_); }));
    reached &= Print(CompareLoad("checkpoint load", Cache::kCold, 0.5));
    Row warm = CompareLoad("checkpoint load, from the page cache", Cache::kWarm, 0);
    std::printf("%s: %.0f against %.0f MB/s, ratio %.2f\n", warm.name.c_str(), warm.thing, warm.bound, warm.ratio);
    return reached;
  }

 private:
  absl::Status Save() { return checkpoint::WriteCheckpoint(save_, checkpoint::ModelView{{table_.get()}, nullptr}, {}); }
  absl::Status Load() {
    ASSIGN_OR_RETURN(const auto reader, checkpoint::CheckpointReader::Open(save_));
    return reader.LoadInto(checkpoint::ModelTables{{loaded_.get()}, nullptr}, checkpoint::LoadKind::kTraining);
  }
  Row CompareLoad(const char* name, Cache cache, double bar) {
    const auto load = [&] {
      loaded_->Clear();
      for (const auto& entry : std::filesystem::directory_iterator(save_)) PrepareCache(entry.path(), cache);
      return static_cast<double>(bytes_) / 1e6 / Seconds([&] { Must(Load()); });
    };
    const auto bound = [&] {
      PrepareCache(file_, cache);
      return static_cast<double>(bytes_) / 1e6 / Seconds([&] { ReadWhole(file_); });
    };
    return Compare(name, "MB/s", bar, rounds_, load, bound);
  }
  // Each side begins with nothing of the other left to be written.
  double Speed(const std::function<void()>& fn, const std::string& replaced) {
    Must(base::RemoveTree(replaced));
    sync();
    return static_cast<double>(bytes_) / 1e6 / Seconds(fn);
  }

  const std::string save_, file_;
  const int rounds_;
  const std::unique_ptr<table::SparseTable> table_, loaded_;
  uint64_t bytes_ = 0;
};

// By what the process grows when it loads the save; in a process of its own, which has nothing to use again.
double LoadedBytes(const std::string& save, const table::ModelConfig& config, checkpoint::LoadKind kind) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    const auto table = MakeTable(config);
    const uint64_t before = base::ResidentBytes();
    const auto reader = checkpoint::CheckpointReader::Open(save);
    Must(reader.status());
    Must(reader->LoadInto(checkpoint::ModelTables{{table.get()}, nullptr}, kind));
    const double grown = static_cast<double>(base::ResidentBytes() - before);
    _exit(write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  double grown = 0;
  int status = 0;
  if (child < 0 || read(ends[0], &grown, sizeof grown) != sizeof grown || waitpid(child, &status, 0) != child ||
      status != 0)
    std::exit(1);
  close(ends[0]);
  close(ends[1]);
  return grown;
}

// Over a doubling of the rows: how full the index is depends on their number.
bool InferenceMemory(const std::string& folder, int dim, uint64_t rows, double bar) {
  const table::ModelConfig trained = ConfigOf(dim, "adam");
  const std::string save = absl::StrCat(folder, "/adam", dim);
  double training = 0, inference = 0;
  constexpr int kSizes = 4;
  for (int i = 0; i < kSizes; ++i) {
    const auto count = static_cast<uint64_t>(static_cast<double>(rows) * std::pow(2, static_cast<double>(i) / kSizes));
    {
      const auto table = MakeTable(trained);
      Fill(*table, count);
      Must(checkpoint::WriteCheckpoint(save, checkpoint::ModelView{{table.get()}, nullptr}, {}));
    }
    training += LoadedBytes(save, trained, checkpoint::LoadKind::kTraining) / static_cast<double>(count) / kSizes;
    inference += LoadedBytes(save, trained.WeightsOnly(), checkpoint::LoadKind::kInference) /
                 static_cast<double>(count) / kSizes;
  }
  return Print({absl::StrCat("inference of an Adam model, dim ", dim, ", memory / with its state"), "bytes a row",
                inference, training, inference / training, bar, Better::kLower});
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) {
  bool quick = false;
  std::string parent = ".";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0)
      quick = true;
    else
      parent = argv[i];
  }
  std::string folder = parent + "/checkpoint_bench.XXXXXX";
  if (!mkdtemp(folder.data())) {
    std::perror(folder.c_str());
    return 1;
  }
  const uint64_t rows = quick ? 2'000'000 : 8'000'000;
  bool reached = regatta::bench::InferenceMemory(folder, 16, 1'000'000, 0.45);
  reached &= regatta::bench::InferenceMemory(folder, 10, 1'000'000, 0.50);
  reached &= regatta::bench::Bench(folder, rows, quick ? 5 : 7).Run();
  std::filesystem::remove_all(folder);
  return reached ? 0 : 1;
}
