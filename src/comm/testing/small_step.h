// Steps that a test writes down: keys with a gradient each, and the gradients of the dense parameters. The tables have
// rows of one weight and the rule w -= (sum of gradients) / samples, so that every result is a formula of a line.
// Thread-safety: plain values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "base/grouped_keys.h"
#include "comm/communicator.h"
#include "table/table_config.h"

namespace regatta::comm {

inline table::ModelConfig SmallTables(int64_t dense = 2) {
  table::ModelConfig config;
  table::SparseTableConfig sparse;
  sparse.name = "t";
  sparse.dim = 1;
  sparse.rule.name = "sgd";
  sparse.rule.learning_rate = 1;
  sparse.init = {"constant", 0, 0};
  config.sparse.push_back(sparse);
  if (dense > 0) config.dense.parameters = {{"w", {dense}, {"constant", 0, 0}}};
  config.dense.rule = sparse.rule;
  return config;
}

struct SmallStep {
  std::map<base::Key, float> grads;
  std::vector<float> dense;
  uint32_t samples = 1;
  std::optional<float> rate = {};  // of the table
  std::optional<float> dense_rate = {};
};

inline base::PassKeys SmallPass(uint64_t pass = 0, uint64_t first_batch = 0) {
  base::PassKeys keys;
  keys.learnt = {.pass = pass, .low = first_batch};
  return keys;
}

// Views of a step, and the memory behind them.
class StepViews {
 public:
  StepViews(const SmallStep& step, uint64_t batch, int thread, uint64_t pass = 0)
      : step_(step), keys_(KeysOf(step)), table_keys_(keys_.view()), batch_(batch), thread_(thread), pass_(pass) {
    for (const base::Key key : keys_.keys()) rows_.push_back(step_.grads.at(key));
    table_.keys = table_keys_;
    table_.grads = {rows_.data(), 1, 1};
    table_.learning_rate = step_.rate;
    piece_ = {0, step_.dense};
  }
  StepViews(const StepViews&) = delete;
  StepViews& operator=(const StepViews&) = delete;

  base::StepKeys wanted(base::StepKind kind = base::StepKind::kTrain) const {
    return {.step = batch_, .thread = thread_, .kind = kind, .tables = {&table_keys_, 1}};
  }
  base::StepGrads grads() const {
    base::StepGrads grads;
    grads.step = batch_;
    grads.thread = thread_;
    grads.samples = step_.samples;
    grads.tables = {&table_, 1};
    if (!step_.dense.empty()) grads.dense = {&piece_, 1};
    grads.batch = batch_;
    grads.pass = pass_;
    grads.dense_learning_rate = step_.dense_rate;
    return grads;
  }
  std::map<base::Key, float> Read(const base::StepRows& rows) const {
    std::map<base::Key, float> values;
    for (size_t i = 0; i < keys_.size(); ++i) values[keys_.keys()[i]] = rows.tables[0].row(static_cast<int64_t>(i))[0];
    return values;
  }

 private:
  static std::vector<base::Key> KeysOf(const SmallStep& step) {
    std::vector<base::Key> keys;
    for (const auto& [key, grad] : step.grads) keys.push_back(key);
    return keys;
  }

  const SmallStep step_;
  const base::GroupedKeys keys_;
  const base::TableKeys table_keys_;
  const uint64_t batch_;
  const int thread_;
  const uint64_t pass_;
  std::vector<float> rows_;
  base::TableGrads table_;
  base::DenseGrad piece_;
};

// Pull and Commit. What the pull gave goes to *pulled, if that is not null.
inline absl::Status RunStep(Communicator& comm, const SmallStep& step, uint64_t batch, int thread = 0,
                            uint64_t pass = 0, std::map<base::Key, float>* pulled = nullptr) {
  const StepViews views(step, batch, thread, pass);
  base::StepRows rows;
  RETURN_IF_ERROR(comm.Pull(views.wanted(), &rows));
  if (pulled != nullptr) *pulled = views.Read(rows);
  return comm.Commit(views.grads());
}

// fn(0) … fn(count - 1), a thread each; the first error.
inline absl::Status InThreads(int count, const std::function<absl::Status(int)>& fn) {
  std::vector<absl::Status> results(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { results[static_cast<size_t>(i)] = fn(i); });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace regatta::comm
