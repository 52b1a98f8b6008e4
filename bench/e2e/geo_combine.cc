// Trains a small click model alone, or in geo by several workers that share the data, and prints its AUC and log loss
// on held-out data. One cell of the table that bench/geo_combine.py makes:
//   geo_combine train=FOLDER test=FOLDER [workers=0] [combine=count|mean|sum] [epochs=2] [batch=1000] [geo_step=400]
// workers=0: one process without servers. Server and workers are threads of this process.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/e2e/workload.h"
#include "regatta.h"
#include "server/ps_server.h"

namespace regatta::bench {
namespace {

using Arguments = std::map<std::string, std::string>;

// The network of docs/results.md: dim 9, layers 128-64.
class Clicks : public Model {
 public:
  Clicks() : mlp_(Declare()) {}
  Output Forward(const Input& in) const override {
    return BinaryOutput(mlp_(in, torch::cat({in.embeddings[0], in.features}, 1)), in.labels);
  }

 private:
  Mlp Declare() {
    constexpr int kSlots = 26, kDense = 13, kDim = 9;
    spec_.schema = CriteoSchema(kSlots, kDense);
    const int ids = spec_.AddEmbedding({.table = "ids", .dim = kDim, .init = Init::Uniform(0.05)});
    return Mlp(spec_, "mlp", spec_.width(ids) + kDense, {128, 64, 1}, LastLayer::kLinear);
  }
  Mlp mlp_;
};

std::string Text(const Arguments& arguments, const std::string& name, const std::string& fallback) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? fallback : found->second;
}

int Number(const Arguments& arguments, const std::string& name, int fallback) {
  return std::atoi(Text(arguments, name, std::to_string(fallback)).c_str());
}

absl::StatusOr<comm::GeoCombine> CombineNamed(const std::string& name) {
  if (name == "count") return comm::GeoCombine::kCount;
  if (name == "mean") return comm::GeoCombine::kMean;
  if (name == "sum") return comm::GeoCombine::kSum;
  return absl::InvalidArgumentError(absl::StrCat("combine=", name, ": want count, mean or sum"));
}

// The report of the held-out data.
absl::StatusOr<EpochReport> Train(Fleet& fleet, const Arguments& arguments) {
  const Clicks model;
  TrainingOptions options;
  options.optimizer.sparse = options.optimizer.dense = {.name = "adam", .learning_rate = 0.001};
  options.print_interval = 0;
  options.worker.mode = Mode::kGeo;
  options.worker.geo_interval = static_cast<uint64_t>(Number(arguments, "geo_step", 400));
  ASSIGN_OR_RETURN(options.worker.geo_combine, CombineNamed(Text(arguments, "combine", "count")));
  ASSIGN_OR_RETURN(const auto training, Training::Start(fleet, model, options));
  const DatasetOptions reading{.batch_size = Number(arguments, "batch", 1000)};
  ASSIGN_OR_RETURN(const auto data, OpenDataset(fleet, model, Text(arguments, "train", ""), reading));
  for (int epoch = 0; epoch < Number(arguments, "epochs", 2); ++epoch)
    RETURN_IF_ERROR(training->TrainEpoch(*data).status());
  ASSIGN_OR_RETURN(const auto test, OpenDataset(fleet, model, Text(arguments, "test", ""), reading));
  return training->Evaluate(*test);
}

absl::StatusOr<EpochReport> Work(const cluster::ClusterSpec& place, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto fleet, Fleet::Init(place));
  const absl::StatusOr<EpochReport> report = Train(*fleet, arguments);
  fleet->StopWorker(report.status());
  return report;
}

absl::StatusOr<EpochReport> Together(int workers, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto server, server::PsServer::Start({.listen = {"127.0.0.1:0"}, .workers = workers}));
  std::vector<absl::StatusOr<EpochReport>> reports(static_cast<size_t>(workers), absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < workers; ++rank)
    threads.emplace_back([&, rank] {
      reports[static_cast<size_t>(rank)] = Work(WorkerOf(server->endpoints().front(), rank, workers), arguments);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& report : reports) RETURN_IF_ERROR(report.status());
  RETURN_IF_ERROR(server->Wait());
  return reports.front();
}

int Main(int argc, char** argv) {
  PrepareProcess(argv);
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = std::min(word.find('='), word.size() - 1);
    arguments[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const int workers = Number(arguments, "workers", 0);
  const auto report = workers == 0 ? Work({}, arguments) : Together(workers, arguments);
  if (!report.ok()) {
    std::fprintf(stderr, "geo_combine: error: %s\n", std::string(report.status().message()).c_str());
    return 1;
  }
  std::printf("auc %.5f logloss %.5f samples %llu\n", report->auc().value_or(0.5), report->loss,
              static_cast<unsigned long long>(report->samples));
  return 0;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::Main(argc, argv); }
