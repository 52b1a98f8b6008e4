// A model without tensors, for tests of the modes: keys and gradients of a step are functions of (rank, step) and of
// what was pulled. And a ledger: a row a push with gradient 1, so that a lost or doubled push shows.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "base/grouped_keys.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/step.h"
#include "checkpoint/model_store.h"
#include "client/local_client.h"
#include "comm/communicator.h"
#include "table/gradient_sum.h"

namespace regatta::fleet {

inline constexpr int kToyDim = 3;
inline constexpr int kToyDense = 37;
inline constexpr base::Key kSharedKey = 1;

inline table::ModelConfig ToyTables(const std::string& rule) {
  table::ModelConfig config;
  table::SparseTableConfig sparse;
  sparse.name = "embedding";
  sparse.dim = kToyDim;
  sparse.rule.name = rule;
  sparse.rule.learning_rate = 0.1;
  sparse.init = {"uniform", -1, 1};
  config.sparse.push_back(sparse);
  config.dense.parameters = {{"w", {kToyDense}, {"uniform", -1, 1}}};
  config.dense.rule = sparse.rule;
  return config;
}

inline table::ModelConfig LedgerTables() {
  table::ModelConfig config;
  table::SparseTableConfig sparse;
  sparse.name = "ledger";
  sparse.dim = 1;
  sparse.rule.name = "sgd";
  sparse.rule.learning_rate = 1;
  sparse.init = {"constant", 0, 0};
  config.sparse.push_back(sparse);
  config.dense.parameters = {{"w", {3}, {"constant", 0, 0}}};
  config.dense.rule = sparse.rule;
  return config;
}

struct ToyResult {
  std::map<base::Key, std::vector<float>> rows;  // whole rows, state included
  std::vector<float> dense;
};

inline absl::StatusOr<ToyResult> ReadToy(checkpoint::ModelStore& model) {
  ASSIGN_OR_RETURN(const checkpoint::SaveContents contents, model.Contents());
  ToyResult result;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
    RETURN_IF_ERROR(contents.sparse[0]->ForEachRow(
        shard, [&](base::Key key, std::span<const float> row) { result.rows[key].assign(row.begin(), row.end()); }));
  result.dense.assign(contents.dense->arrays[0].begin(), contents.dense->arrays[0].end());
  return result;
}

// Keys and gradients of one step, with the memory that its views need.
struct ToyStep {
  ToyStep(int rank, uint64_t step)
      : rng(base::Combine64(static_cast<uint64_t>(rank), step)),
        keys(Draw(rng)),
        samples(static_cast<uint32_t>(10 + rank)) {}
  static std::vector<base::Key> Draw(base::Rng& rng) {
    std::vector<base::Key> drawn(25);
    for (base::Key& key : drawn) key = rng.Below(60);
    return drawn;
  }
  void Learn(const base::StepRows& rows) {
    grads.resize(keys.size() * kToyDim);
    for (size_t i = 0; i < keys.size(); ++i)
      for (int j = 0; j < kToyDim; ++j)
        grads[i * kToyDim + static_cast<size_t>(j)] =
            rows.tables[0].row(static_cast<int64_t>(i))[j] + static_cast<float>(rng.Uniform());
    dense.assign(rows.dense.begin(), rows.dense.end());
    for (float& g : dense) g += static_cast<float>(rng.Uniform());
  }
  base::TableGrads Table() const {
    base::TableGrads table;
    table.keys = keys.view();
    table.grads = {grads.data(), kToyDim, kToyDim};
    return table;
  }

  base::Rng rng;
  base::GroupedKeys keys;
  uint32_t samples;
  std::vector<float> grads, dense;
};

inline absl::Status RunToyStep(comm::Communicator& comm, int rank, uint64_t step, uint64_t first_step, uint64_t pass,
                               int thread) {
  ToyStep toy(rank, step);
  const base::TableKeys keys = toy.keys.view();
  const base::StepKeys wanted{
      .step = first_step + step, .thread = thread, .kind = base::StepKind::kTrain, .tables = {&keys, 1}};
  base::StepRows rows;
  RETURN_IF_ERROR(comm.Prefetch(wanted));
  RETURN_IF_ERROR(comm.Pull(wanted, &rows));
  toy.Learn(rows);
  const base::TableGrads table = toy.Table();
  const base::DenseGrad piece{0, toy.dense};
  base::StepGrads grads;
  grads.step = first_step + step;
  grads.thread = thread;
  grads.samples = toy.samples;
  grads.tables = {&table, 1};
  grads.dense = {&piece, 1};
  grads.batch = step;
  grads.pass = pass;
  return comm.Commit(grads);
}

// Steps 0 … steps - 1 of a pass, dealt to the threads in turn.
inline absl::Status RunToyPass(comm::Communicator& comm, int rank, uint64_t pass, uint64_t first_step, uint64_t steps,
                               int threads) {
  base::PassKeys keys;
  keys.learnt.pass = pass;
  keys.first_step = first_step;
  RETURN_IF_ERROR(comm.BeginPass(keys));
  std::vector<absl::Status> results(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (uint64_t step = static_cast<uint64_t>(t); step < steps; step += static_cast<uint64_t>(threads)) {
        absl::Status& result = results[static_cast<size_t>(t)];
        result = RunToyStep(comm, rank, step, first_step, pass, t);
        if (!result.ok()) return comm.Abort(result);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const absl::Status& result : results) RETURN_IF_ERROR(result);
  return comm.EndPass();
}

// The learning rates are the table's and the dense parameters'; nothing = their schedules'.
inline absl::Status RunLedgerStep(comm::Communicator& comm, int rank, uint64_t step,
                                  std::optional<float> rate = std::nullopt,
                                  std::optional<float> dense_rate = std::nullopt) {
  const base::GroupedKeys grouped({kSharedKey, base::Key{1000} * static_cast<uint64_t>(rank + 1) + step});
  const base::TableKeys keys = grouped.view();
  const base::StepKeys wanted{.step = step, .thread = 0, .kind = base::StepKind::kTrain, .tables = {&keys, 1}};
  base::StepRows rows;
  RETURN_IF_ERROR(comm.Pull(wanted, &rows));
  const float ones[] = {-1, -1};  // the rule subtracts
  // Dense element 1 gets step + 1: of an exchange that adds several steps up, a lost one changes the mean.
  const float dense[] = {-1, -static_cast<float>(step + 1), -1};
  base::TableGrads table;
  table.keys = keys;
  table.grads = {ones, 1, 1};
  table.learning_rate = rate;
  const base::DenseGrad piece{0, dense};
  base::StepGrads grads;
  grads.step = step;
  grads.samples = 1;
  grads.tables = {&table, 1};
  grads.dense = {&piece, 1};
  grads.batch = step;
  grads.dense_learning_rate = dense_rate;
  return comm.Commit(grads);
}

inline absl::Status RunLedgerPass(comm::Communicator& comm, int rank, uint64_t steps) {
  RETURN_IF_ERROR(comm.BeginPass({}));
  for (uint64_t step = 0; step < steps; ++step) RETURN_IF_ERROR(RunLedgerStep(comm, rank, step));
  return comm.EndPass();
}

// One process that adds up the micro-batches of several ranks and updates once.
class ToyTrainer {
 public:
  explicit ToyTrainer(const std::string& rule) {
    const table::ModelConfig config = ToyTables(rule);
    sparse_ = table::SparseTable::Create(config.sparse[0]).value();
    dense_ = table::DenseTable::Create(config.dense).value();
    client_ = std::make_unique<client::LocalClient>(std::vector<table::SparseTable*>{sparse_.get()}, dense_.get(),
                                                    table::NanPolicy::kSkip);
  }
  void Step(const std::vector<int>& ranks, uint64_t step) {
    std::vector<ToyStep> toys;
    for (const int rank : ranks) {
      ToyStep toy(rank, step);
      std::vector<float> pulled(toy.keys.size() * kToyDim);
      ASSERT_TRUE(sparse_->Pull(toy.keys.view(), base::StepKind::kTrain, {pulled.data(), kToyDim, kToyDim}).ok());
      const base::RowsView<const float> view{pulled.data(), kToyDim, kToyDim};
      base::StepRows rows;
      rows.tables = {&view, 1};
      rows.dense = dense_->Values();
      toy.Learn(rows);
      toys.push_back(std::move(toy));
    }
    std::map<base::Key, std::vector<float>> sums;  // a sum of its own, to check the system's against
    std::vector<float> dense;
    uint32_t samples = 0;
    for (const ToyStep& toy : toys) {
      samples += toy.samples;
      for (size_t i = 0; i < toy.keys.size(); ++i) {
        auto [it, fresh] = sums.try_emplace(toy.keys.keys()[i], kToyDim, 0.0f);
        for (size_t j = 0; j < kToyDim; ++j)
          it->second[j] = fresh ? toy.grads[i * kToyDim + j] : it->second[j] + toy.grads[i * kToyDim + j];
      }
      if (dense.empty()) {
        dense = toy.dense;
        continue;
      }
      for (size_t j = 0; j < dense.size(); ++j) dense[j] += toy.dense[j];
    }
    std::vector<base::Key> keys;
    for (const auto& [key, sum] : sums) keys.push_back(key);
    const base::GroupedKeys grouped(std::move(keys));
    std::vector<float> rows;
    for (const base::Key key : grouped.keys()) rows.insert(rows.end(), sums[key].begin(), sums[key].end());
    base::TableGrads table;
    table.keys = grouped.view();
    table.grads = {rows.data(), kToyDim, kToyDim};
    const base::DenseGrad piece{0, dense};
    base::StepGrads grads;
    grads.step = step;
    grads.samples = samples;
    grads.tables = {&table, 1};
    grads.dense = {&piece, 1};
    client::Call call;
    client_->Push(grads, call);
    client_->PushDense(grads, call);
    ASSERT_TRUE(call.Wait().ok());
  }
  ToyResult Result() const {
    ToyResult result;
    for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
      sparse_->ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
        result.rows[key] = {row.begin(), row.end()};
      });
    result.dense = {dense_->Values().begin(), dense_->Values().end()};
    return result;
  }

 private:
  std::unique_ptr<table::SparseTable> sparse_;
  std::unique_ptr<table::DenseTable> dense_;
  std::unique_ptr<client::LocalClient> client_;
};

}  // namespace regatta::fleet
