// Trains a net that the zoo does not have, for tests/parity/nets_test.py: parity_nets NET DATA SAVE [INIT]. One epoch
// of SGD, batches of 8, one thread; INIT is a save to begin from.
#include <cstdio>
#include <memory>
#include <string>

#include "model/model.h"
#include "model/tensor.h"
#include "worker/process.h"
#include "worker/training.h"
#include "worker/worker_data.h"

namespace {

using regatta::base::Pooling;
using regatta::model::BinaryOutput;
using regatta::model::Init;
using regatta::model::Input;
using regatta::model::Joined;
using regatta::model::Metric;
using regatta::model::Model;
using regatta::model::Output;
using regatta::model::RegressionOutput;

// Two lookups in the table "item", with slots of their own and one in common, and a table that sees two slots of four.
class TwoLookups : public Model {
 public:
  TwoLookups() {
    spec_.schema = regatta::data::CriteoSchema(4, 0);
    const Init init = Init::Uniform(0.1);
    spec_.AddEmbedding({.table = "item", .dim = 4, .init = init, .slots = {"1", "2"}});
    spec_.AddEmbedding({.table = "other", .dim = 2, .init = init, .pooling = Pooling::kSqrtN, .slots = {"4", "1"}});
    spec_.AddEmbedding({.table = "item", .dim = 4, .init = init, .pooling = Pooling::kMean, .slots = {"3", "2"}});
    spec_.AddDense("bias", {1}, Init::Constant(0));
  }
  Output Forward(const Input& in) const override {
    const torch::Tensor products = (in.embeddings[0] * in.embeddings[2]).sum(1);
    return BinaryOutput(products + in.embeddings[1].sum(1) + in.dense[0], in.labels);
  }
};

// An item and a history of items, of one table: the history comes as rows and offsets, and its mean is taken here.
class Sequence : public Model {
 public:
  Sequence() {
    spec_.schema = regatta::data::CriteoSchema(4, 0);
    const Init init = Init::Uniform(0.1);
    spec_.AddEmbedding({.table = "item", .dim = 4, .init = init, .slots = {"1"}});
    spec_.AddEmbedding({.table = "item", .dim = 4, .init = init, .pooling = Pooling::kNone, .slots = {"2"}});
    spec_.AddDense("bias", {1}, Init::Constant(0));
  }
  Output Forward(const Input& in) const override {
    const torch::Tensor &item = in.embeddings[0], &history = in.embeddings[1], &offsets = in.offsets[1];
    const torch::Tensor counts = offsets.diff();
    const torch::Tensor sample = torch::repeat_interleave(torch::arange(counts.size(0)), counts);
    const torch::Tensor sums = torch::zeros_like(item).index_add(0, sample, history);
    const torch::Tensor mean = sums / counts.clamp_min(1).unsqueeze(1);
    return BinaryOutput((item * mean).sum(1) + in.dense[0], in.labels);
  }
};

// Two labels and an output of each: a click, and a purchase, whose logit has the click's in it. The purchase counts
// half.
class TwoLabels : public Model {
 public:
  TwoLabels() {
    spec_.schema = regatta::data::CriteoSchema(4, 0);
    spec_.schema.labels = {"click", "buy"};
    spec_.outputs = {{.name = "click"}, {.name = "purchase", .label = "buy"}};
    const Init init = Init::Uniform(0.1);
    spec_.AddEmbedding({.table = "item", .dim = 3, .init = init, .slots = {"1", "2"}});
    spec_.AddEmbedding({.table = "other", .dim = 2, .init = init, .pooling = Pooling::kMean, .slots = {"3"}});
    spec_.AddDense("click.w", {6, 1}, Init::Normal(0.1));
    spec_.AddDense("buy.w", {2, 1}, Init::Normal(0.1));
    spec_.AddDense("bias", {2}, Init::Constant(0));
  }
  Output Forward(const Input& in) const override {
    const torch::Tensor click = torch::mm(in.embeddings[0], in.dense[0]) + in.dense[2][0];
    const torch::Tensor buy = torch::mm(in.embeddings[1], in.dense[1]) + click + in.dense[2][1];
    return Joined({BinaryOutput(click, in.label(0)), BinaryOutput(buy, in.label(1))}, {1, 0.5});
  }
};

// A price: a linear regression over the embeddings. Its loss is a twentieth of the squared error.
class Regression : public Model {
 public:
  Regression() {
    spec_.schema = regatta::data::CriteoSchema(4, 0);
    spec_.schema.labels = {"price"};
    spec_.outputs = {{.name = "price", .metric = Metric::kRegression}};
    spec_.AddEmbedding({.table = "item", .dim = 3, .init = Init::Uniform(0.1), .slots = {"1", "2"}});
    spec_.AddDense("w", {6, 1}, Init::Normal(0.1));
    spec_.AddDense("bias", {1}, Init::Constant(0));
  }
  Output Forward(const Input& in) const override {
    Output out = RegressionOutput(torch::addmm(in.dense[1], in.embeddings[0], in.dense[0]), in.labels);
    if (out.loss.defined()) out.loss = out.loss / 20;
    return out;
  }
};

absl::StatusOr<std::unique_ptr<Model>> MakeNet(const std::string& name) {
  if (name == "two_lookups") return std::make_unique<TwoLookups>();
  if (name == "sequence") return std::make_unique<Sequence>();
  if (name == "two_labels") return std::make_unique<TwoLabels>();
  if (name == "regression") return std::make_unique<Regression>();
  return absl::NotFoundError("there is no net " + name);
}

absl::Status Run(const std::string& net, const std::string& data, const std::string& save, const char* init) {
  ASSIGN_OR_RETURN(const auto model, MakeNet(net));
  ASSIGN_OR_RETURN(const auto fleet, regatta::fleet::Fleet::Init());
  regatta::worker::TrainingOptions options;
  options.optimizer.sparse = options.optimizer.dense = {.name = "sgd", .learning_rate = 0.5};
  options.print_interval = 1;
  ASSIGN_OR_RETURN(const auto training, regatta::worker::Training::Start(*fleet, *model, options));
  if (init != nullptr) RETURN_IF_ERROR(fleet->LoadModel(init));
  ASSIGN_OR_RETURN(const auto dataset, regatta::worker::OpenDataset(*fleet, *model, data, {.batch_size = 8}));
  RETURN_IF_ERROR(training->TrainEpoch(*dataset).status());
  return training->Save(save);
}

}  // namespace

int main(int argc, char** argv) {
  regatta::worker::PrepareProcess(argv);
  if (argc < 4) {
    std::fputs("usage: parity_nets NET DATA SAVE [INIT]\n", stderr);
    return 2;
  }
  const absl::Status status = Run(argv[1], argv[2], argv[3], argc > 4 ? argv[4] : nullptr);
  if (!status.ok()) std::fprintf(stderr, "parity_nets: error: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
