// A Stepper that is driven from outside against the trainer's own loop, with the same batches, one thread and no net:
// both plan ahead, pull, pool, merge and commit. --quick measures fewer rounds.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/measure.h"
#include "client/local_client.h"
#include "comm/local.h"
#include "lookup/pooling.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"
#include "train/plan_queue.h"
#include "train/stepper.h"
#include "train/trainer.h"

namespace regatta {
namespace {

constexpr int kDim = 16, kSlots = 26, kSamples = 1000;
constexpr uint64_t kBatches = 100;

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "train_bench: %s\n", std::string(value.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

void OrDie(const absl::Status& status) {
  if (!status.ok()) OrDie(absl::StatusOr<int>(status));
}

data::Batch MakeBatch(uint64_t index) {
  data::Batch batch;
  batch.index = index;
  batch.size = kSamples;
  batch.slots = kSlots;
  batch.offsets = {0};
  base::Rng rng(index);
  for (int i = 0; i < kSamples * kSlots; ++i) {
    batch.keys.push_back(base::Mix64(rng.Below(1000) * rng.Below(1000)));
    batch.offsets.push_back(static_cast<uint32_t>(batch.keys.size()));
  }
  batch.labels.assign(kSamples, 0.0f);
  return batch;
}

// Batches that were made before; both sides copy them.
class Prepared : public data::Dataset {
 public:
  Prepared() {
    for (uint64_t k = 0; k < kBatches; ++k) batches_.push_back(MakeBatch(k));
  }
  absl::Status BeginPass(const base::DataPosition&) override { return next_ = 0, absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<data::Batch>> Next() override {
    if (next_ == kBatches) return std::unique_ptr<data::Batch>();
    return std::make_unique<data::Batch>(batches_[next_++]);
  }
  void Interrupt() override {}
  void Recycle(std::unique_ptr<data::Batch>) override {}
  absl::Status EndPass() override { return absl::OkStatus(); }
  data::Progress progress() const override { return {}; }

 private:
  std::vector<data::Batch> batches_;
  uint64_t next_ = 0;
};

const std::vector<float>& Gradient() {
  static const std::vector<float> values(size_t{kSamples} * kSlots * kDim, 0.001f);
  return values;
}

// It computes nothing: what is left of a step is the loop's.
class NoNet : public train::Net {
 public:
  NoNet() {
    spec_.name = "none";
    for (int s = 0; s < kSlots; ++s) spec_.schema.sparse_slots.push_back(std::to_string(s));
    spec_.AddEmbedding({.table = "embedding", .dim = kDim, .init = train::Init::Constant(0)});
  }
  const train::NetSpec& spec() const override { return spec_; }
  absl::StatusOr<train::NetOutput> Forward(const train::NetInput&) override {
    return train::NetOutput{half_view_, {&half_view_, 1}};
  }
  absl::StatusOr<train::Predictions> Predict(const train::NetInput&) override {
    return train::Predictions{&half_view_, 1};
  }
  absl::StatusOr<train::NetGrads> Backward(const base::TensorView&) override {
    grad_ = base::TensorView::Matrix(Gradient().data(), kSamples, kSlots * kDim);
    return train::NetGrads{{&grad_, 1}, {}};
  }

 private:
  train::NetSpec spec_;
  const std::vector<float> half_ = std::vector<float>(kSamples, 0.5f);
  const base::TensorView half_view_ = base::TensorView::Vector(half_.data(), kSamples);
  base::TensorView grad_;
};

struct Silent : train::PassObserver {
  StepAction AfterStep(const Step&) override { return StepAction::kGoOn; }
  absl::Status AtPause(const base::DataPosition&) override { return absl::OkStatus(); }
  absl::Status AtEnd(const train::PassEnd&) override { return absl::OkStatus(); }
  absl::Status OnBadLoss(const data::Batch&, absl::Status status) override { return status; }
  bool StopsHere() override { return false; }
  bool StopAsked() override { return false; }
};

// One side's own table, so that neither finds the other's rows in the cache.
struct Side {
  Side() {
    table::SparseTableConfig config;
    config.name = "embedding";
    config.dim = kDim;
    config.rule.name = "std_adagrad";
    sparse = OrDie(table::SparseTable::Create(config));
    client = std::make_unique<client::LocalClient>(std::vector<table::SparseTable*>{sparse.get()}, nullptr,
                                                   table::NanPolicy::kAbort);
    local = std::make_unique<comm::Local>(*client, 1);
  }
  std::unique_ptr<table::SparseTable> sparse;
  std::unique_ptr<client::LocalClient> client;
  std::unique_ptr<comm::Local> local;
  Prepared data;
};

class Loop {
 public:
  double Pass() {
    return kBatches / bench::Seconds([this] {
             OrDie(trainer_.RunPass(side_.data, base::StepKind::kTrain, {}, 0, silent_).status());
           });
  }

 private:
  Side side_;
  Silent silent_;
  train::Trainer trainer_{[]() -> absl::StatusOr<std::unique_ptr<train::Net>> { return std::make_unique<NoNet>(); },
                          *side_.local,
                          {.threads = 1}};
};

class Outside {
 public:
  double Pass() {
    return kBatches / bench::Seconds([this] { Run(); });
  }

 private:
  void Run() {
    train::PlanQueue queue(side_.data, {AllSlots()}, 3, nullptr);
    OrDie(stepper_.BeginPass({}));
    queue.Start({});
    while (auto planned = OrDie(queue.Next([] { return false; }))) {
      Step(*planned);
      queue.Recycle(std::move(planned));
    }
    OrDie(queue.Stop());
    OrDie(stepper_.EndPass());
  }
  void Step(const train::PlannedBatch& planned) {
    const lookup::KeyPlan& plan = planned.plans[0];
    const base::TableKeys keys = plan.For(0);
    stepper_.BeginStep({.step = planned.batch->index, .batch = planned.batch->index});
    const base::StepRows rows = OrDie(stepper_.Pull({&keys, 1}));
    lookup::GatherPool(plan, lookup::Pooling::kSum, rows.tables[0], {pooled_.data(), kSlots * kDim, kSlots});
    if (merged_.size() < plan.keys.size() * kDim) merged_.resize(plan.keys.size() * kDim);
    lookup::MergeGradients(plan, lookup::Pooling::kSum, {Gradient().data(), kSlots * kDim, kSlots},
                           {merged_.data(), kDim, kDim});
    const base::TableGrads grads{
        .keys = keys, .grads = {merged_.data(), kDim, kDim}, .slot = {}, .show = {}, .click = {}};
    OrDie(stepper_.Commit(kSamples, {&grads, 1}, {}));
  }
  static std::vector<int> AllSlots() {
    std::vector<int> slots;
    for (int s = 0; s < kSlots; ++s) slots.push_back(s);
    return slots;
  }

  Side side_;
  train::Stepper stepper_{*side_.local, 0};
  base::RawVector<float> pooled_ = base::RawVector<float>(size_t{kSamples} * kSlots * kDim);
  base::RawVector<float> merged_;
};

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  regatta::Outside outside;
  regatta::Loop loop;
  outside.Pass(), loop.Pass();  // the rows are created
  return regatta::bench::Print(regatta::bench::Compare(
             "stepper from outside / the loop, no net", "steps/s", 0.95, quick ? 5 : 15, [&] { return outside.Pass(); },
             [&] { return loop.Pass(); }))
             ? 0
             : 1;
}
