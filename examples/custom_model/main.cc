// A model of one's own, trained alone or with servers by the same program: `custom_model --help`.
//
// The model looks at interactions, as DLRM does: a small network turns the dense features into a vector of the size of
// an embedding; the dot products of all pairs of vectors, and that vector itself, go through a second network.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "regatta.h"

namespace {

class Interactions : public regatta::Model {
 public:
  Interactions(int slots, int dense, int dim) : dim_(dim), vectors_(slots + 1), bottom_(DeclareInputs(slots, dense)) {
    top_.emplace(spec_, "top", dim_ + vectors_ * (vectors_ - 1) / 2, std::vector<int64_t>{32, 1},
                 regatta::LastLayer::kLinear);
    const torch::Tensor pairs = torch::triu_indices(vectors_, vectors_, 1);
    pairs_ = (pairs[0] * vectors_ + pairs[1]).contiguous();
  }

  regatta::Output Forward(const regatta::Input& in) const override {
    const torch::Tensor dense = bottom_(in, in.features);
    const torch::Tensor vectors = torch::cat({in.embeddings[0].view({-1, vectors_ - 1, dim_}), dense.unsqueeze(1)}, 1);
    const torch::Tensor dots = torch::bmm(vectors, vectors.transpose(1, 2)).flatten(1).index_select(1, pairs_);
    return regatta::BinaryOutput((*top_)(in, torch::cat({dense, dots}, 1)), in.labels);
  }

 private:
  regatta::Mlp DeclareInputs(int slots, int dense) {
    spec_.schema = regatta::CriteoSchema(slots, dense);
    spec_.AddEmbedding({.table = "ids", .dim = static_cast<int>(dim_), .init = regatta::Init::Uniform(0.05)});
    return regatta::Mlp(spec_, "bottom", dense, {16, dim_}, regatta::LastLayer::kRelu);
  }

  const int64_t dim_, vectors_;
  const regatta::Mlp bottom_;
  std::optional<regatta::Mlp> top_;
  torch::Tensor pairs_;  // where the pairs (i, j), i < j, are in a flattened matrix of all
};

using Arguments = std::map<std::string, std::string>;

constexpr char kHelp[] =
    "custom_model data=FOLDER [test=FOLDER] [save=FOLDER] [init=FOLDER] [mode=sync|async|half_async|geo]\n"
    "             [epochs=1] [threads=1] [batch=100] [slots=26] [dense=13] [dim=8] [rate=0.05]\n"
    "Trains so many epochs on the files of data=, split among the workers; saves after every one to save=/epoch_N.\n"
    "init= is a save to go on from. The role comes from the environment, as with regatta train.\n";

int Number(const Arguments& arguments, const std::string& name, int fallback) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? fallback : std::atoi(found->second.c_str());
}

std::string Text(const Arguments& arguments, const std::string& name, const std::string& fallback = "") {
  const auto found = arguments.find(name);
  return found == arguments.end() ? fallback : found->second;
}

absl::StatusOr<regatta::Mode> ModeOf(const std::string& name) {
  if (const auto mode = regatta::ModeNamed(name); mode.has_value()) return *mode;
  return absl::InvalidArgumentError(absl::StrCat("mode=", name, ": want sync, async, half_async or geo"));
}

absl::Status Train(regatta::Fleet& fleet, const Arguments& arguments) {
  const Interactions model(Number(arguments, "slots", 26), Number(arguments, "dense", 13), Number(arguments, "dim", 8));
  regatta::TrainingOptions options;
  const double rate = std::atof(Text(arguments, "rate", "0.05").c_str());
  options.optimizer.sparse = {.name = "adagrad", .learning_rate = rate};
  options.optimizer.dense = {.name = "adagrad", .learning_rate = rate};
  options.worker.threads = Number(arguments, "threads", 1);
  ASSIGN_OR_RETURN(options.worker.mode, ModeOf(Text(arguments, "mode", "sync")));
  // The loop below starts at training->epoch(), so a worker that was killed can be replaced.
  if (fleet.workers_return()) options.worker.on_loss = regatta::LossPolicy::kAwait;
  ASSIGN_OR_RETURN(const auto training, regatta::Training::Start(fleet, model, options));
  // Servers have loaded it themselves (InitServer).
  if (fleet.alone() && arguments.contains("init")) RETURN_IF_ERROR(fleet.LoadModel(arguments.at("init")));

  const regatta::DatasetOptions reading{.batch_size = Number(arguments, "batch", 100)};
  ASSIGN_OR_RETURN(const auto data, regatta::OpenDataset(fleet, model, Text(arguments, "data"), reading));
  const uint64_t epochs = fleet.loaded().epochs + static_cast<uint64_t>(Number(arguments, "epochs", 1));
  while (training->epoch() < epochs) {
    ASSIGN_OR_RETURN(const regatta::EpochReport report, training->TrainEpoch(*data));
    if (fleet.is_first_worker())
      std::printf("epoch %d finished, use time=%d, auc of %d workers: %.6f\n", static_cast<int>(report.epoch),
                  static_cast<int>(report.seconds), fleet.worker_num(), report.auc().value_or(0.5));
    if (arguments.contains("save"))
      RETURN_IF_ERROR(training->Save(absl::StrCat(arguments.at("save"), "/epoch_", report.epoch)));
  }
  if (arguments.contains("test")) {
    ASSIGN_OR_RETURN(const auto test, regatta::OpenDataset(fleet, model, arguments.at("test"), reading));
    ASSIGN_OR_RETURN(const regatta::EpochReport report, training->Evaluate(*test));
    if (fleet.is_first_worker())
      std::printf("test auc: %.6f, loss: %.6f, %d samples\n", report.auc().value_or(0.5), report.loss,
                  static_cast<int>(report.samples));
  }
  if (fleet.is_first_worker()) std::printf("Distribute Train Success!\n");
  return absl::OkStatus();
}

absl::Status Run(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto fleet, regatta::Fleet::Init());
  if (fleet->is_server()) {
    RETURN_IF_ERROR(fleet->InitServer(Text(arguments, "init")));
    return fleet->RunServer();
  }
  const absl::Status trained = Train(*fleet, arguments);
  fleet->StopWorker(trained);
  return trained;
}

}  // namespace

int main(int argc, char** argv) {
  regatta::PrepareProcess(argv);
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    arguments[word.substr(0, word.find('='))] = word.substr(std::min(word.find('='), word.size() - 1) + 1);
  }
  if (!arguments.contains("data")) {
    std::fputs(kHelp, stdout);
    return arguments.contains("--help") ? 0 : 2;
  }
  const absl::Status status = Run(arguments);
  if (!status.ok()) std::fprintf(stderr, "custom_model: error: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
