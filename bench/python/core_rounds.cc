// The C++ side of the rows of the Python package, on one core; scripts/bench python runs it in turns with a script of
// bench/python that does the same. PATH.txt is written by regatta_rounds.
//   core_rounds data PATH     every batch of the text is read and given back
//   core_rounds steps PATH    a step for each batch, read before: plan, pull, pool, merge and commit, with no net
#include <glog/logging.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/freed_memory.h"
#include "base/raw_vector.h"
#include "bench/cores.h"
#include "bench/rounds.h"
#include "client/local_client.h"
#include "comm/local.h"
#include "data/dataset_factory.h"
#include "lookup/key_plan.h"
#include "lookup/pooling.h"
#include "table/sparse_table.h"
#include "train/stepper.h"

namespace regatta::bench {
namespace {

constexpr int kDim = 16;

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  CHECK(value.ok()) << value.status();
  return *std::move(value);
}

std::unique_ptr<data::Dataset> Open(const std::string& path) {
  data::DatasetOptions options;
  options.files = {path + ".txt"};
  options.schema = data::CriteoSchema();
  options.batch_size = 1000;
  return OrDie(data::MakeDataset(options));
}

// Calls fn(batch) for each; what it leaves of the batch goes back to the dataset. The samples.
template <typename Fn>
uint64_t ForEachBatch(data::Dataset& dataset, const Fn& fn) {
  uint64_t samples = 0;
  CHECK_EQ(dataset.BeginPass({}), absl::OkStatus());
  while (std::unique_ptr<data::Batch> batch = OrDie(dataset.Next())) {
    samples += static_cast<uint64_t>(batch->size);
    fn(batch);
    if (batch != nullptr) dataset.Recycle(std::move(batch));
  }
  CHECK_EQ(dataset.EndPass(), absl::OkStatus());
  return samples;
}

// A loop over batches in memory with a table, and nothing in between.
class Steps {
 public:
  explicit Steps(const std::string& path) {
    ForEachBatch(*Open(path), [&](std::unique_ptr<data::Batch>& batch) { batches_.push_back(std::move(batch)); });
    table::SparseTableConfig config;
    config.name = "embedding";
    config.dim = kDim;
    config.rule.name = "adagrad_v2";
    config.rule.learning_rate = 0.01;
    table_ = OrDie(table::SparseTable::Create(config));
    client_ = std::make_unique<client::LocalClient>(std::vector<table::SparseTable*>{table_.get()}, nullptr,
                                                    table::NanPolicy::kSkip);
    local_ = std::make_unique<comm::Local>(*client_, 1);
    stepper_ = std::make_unique<train::Stepper>(*local_, 0);
    CHECK_EQ(stepper_->BeginPass({}), absl::OkStatus());
  }

  uint64_t Run() {
    uint64_t samples = 0;
    for (const auto& batch : batches_) {
      Step(*batch);
      samples += static_cast<uint64_t>(batch->size);
    }
    return samples;
  }

 private:
  void Step(const data::Batch& batch) {
    const size_t bags = batch.offsets.size() - 1;
    planner_.Plan({batch.keys, batch.offsets, {}}, plan_);
    pooled_.resize(bags * kDim);
    gradient_.resize(bags * kDim, 0.001f);
    merged_.resize(plan_.keys.size() * kDim);
    const base::TableKeys keys = plan_.For(0);
    stepper_->BeginStep({.step = step_, .batch = step_});
    ++step_;
    const base::StepRows rows = OrDie(stepper_->Pull({&keys, 1}));
    lookup::GatherPool(plan_, lookup::Pooling::kSum, rows.tables[0], {pooled_.data(), kDim, 1});
    lookup::MergeGradients(plan_, lookup::Pooling::kSum, {gradient_.data(), kDim, 1}, {merged_.data(), kDim, kDim});
    const base::TableGrads grads{
        .keys = keys, .grads = {merged_.data(), kDim, kDim}, .slot = {}, .show = {}, .click = {}};
    CHECK_EQ(stepper_->Commit(static_cast<uint32_t>(batch.size), {&grads, 1}, {}), absl::OkStatus());
  }

  std::vector<std::unique_ptr<data::Batch>> batches_;
  std::unique_ptr<table::SparseTable> table_;
  std::unique_ptr<client::LocalClient> client_;
  std::unique_ptr<comm::Local> local_;
  std::unique_ptr<train::Stepper> stepper_;
  lookup::Planner planner_;
  lookup::KeyPlan plan_;
  base::RawVector<float> pooled_, merged_;
  std::vector<float> gradient_;
  uint64_t step_ = 0;
};

int Main(int argc, char** argv) {
  base::KeepFreedMemory();
  PinTo(1);
  if (argc == 3 && std::strcmp(argv[1], "data") == 0) {
    const std::unique_ptr<data::Dataset> dataset = Open(argv[2]);
    ServeRounds([&] { return ForEachBatch(*dataset, [](std::unique_ptr<data::Batch>&) {}); });
    return 0;
  }
  if (argc == 3 && std::strcmp(argv[1], "steps") == 0) {
    Steps steps(argv[2]);
    ServeRounds([&] { return steps.Run(); });
    return 0;
  }
  std::fprintf(stderr, "core_rounds: called by scripts/bench python; its source says how\n");
  return 2;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::Main(argc, argv); }
