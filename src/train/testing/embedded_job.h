// What a Trainer needs besides a net: tables in the process, made-up data, and an observer that counts.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/grouped_keys.h"
#include "base/mutex.h"
#include "client/local_client.h"
#include "comm/local.h"
#include "data/dataset.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"
#include "train/trainer.h"

namespace regatta::train::testing {

// Batches of 4 samples, made on the spot; batch `bad` has a label that is not a number.
class Numbers : public data::Dataset {
 public:
  explicit Numbers(uint64_t batches, uint64_t bad = UINT64_MAX) : batches_(batches), bad_(bad) {}

  absl::Status BeginPass(const base::DataPosition& done) override {
    base::MutexLock lock(mu_);
    done_ = done;
    next_ = 0;
    interrupted_ = false;
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<data::Batch>> Next() override {
    base::MutexLock lock(mu_);
    while (next_ < batches_ && done_.Contains(next_)) ++next_;
    if (next_ == hang_at && at_hang != nullptr) *at_hang = true;
    while (next_ == hang_at && !interrupted_) changed_.Wait(mu_);
    if (interrupted_ || next_ >= batches_) return std::unique_ptr<data::Batch>();
    auto batch = std::make_unique<data::Batch>();
    batch->index = next_++;
    batch->size = 4;
    batch->slots = 2;
    batch->offsets = {0};
    for (int s = 0; s < 4; ++s) {
      for (uint64_t slot = 0; slot < 2; ++slot) {
        batch->keys.push_back(slot * 1000 + (batch->index + s) % 7);
        batch->offsets.push_back(static_cast<uint32_t>(batch->keys.size()));
      }
      for (int i = 0; i < label_dim; ++i)
        batch->labels.push_back(batch->index == bad_ ? std::nanf("") : static_cast<float>(s % 2 + 10 * i));
    }
    batch->label_dim = label_dim;
    return batch;
  }
  void Interrupt() override {
    base::MutexLock lock(mu_);
    interrupted_ = true;
    changed_.NotifyAll();
  }
  void Recycle(std::unique_ptr<data::Batch>) override {}
  absl::Status EndPass() override { return absl::OkStatus(); }
  data::Progress progress() const override { return {}; }

  int label_dim = 1;                     // label i of sample s is s % 2 + 10 · i
  uint64_t hang_at = UINT64_MAX;         // the batch that never comes, until Interrupt
  std::atomic<bool>* at_hang = nullptr;  // becomes true when that is so

 private:
  const uint64_t batches_, bad_;
  base::Mutex mu_;
  base::CondVar changed_;
  base::DataPosition done_;
  uint64_t next_ = 0;
  bool interrupted_ = false;
};

struct Embedded {
  static constexpr double kLearningRate = 0.5;

  explicit Embedded(int threads, table::NanPolicy nan_policy = table::NanPolicy::kAbort, int64_t biases = 1) {
    table::SparseTableConfig sparse_config;
    sparse_config.name = "embedding";
    sparse_config.dim = 1;
    sparse_config.init = {"constant", 0, 0};
    sparse_config.rule = {.name = "sgd", .learning_rate = kLearningRate};
    sparse = *table::SparseTable::Create(sparse_config);
    table::DenseTableConfig dense_config;
    dense_config.parameters = {{"bias", {biases}, {"constant", 0, 0}}};
    dense_config.rule = {.name = "sgd", .learning_rate = kLearningRate};
    dense = *table::DenseTable::Create(dense_config);
    client =
        std::make_unique<client::LocalClient>(std::vector<table::SparseTable*>{sparse.get()}, dense.get(), nan_policy);
    local = std::make_unique<comm::Local>(*client, threads);
    options.threads = threads;
  }

  // The row of one key; 0 if there is none.
  float RowOf(base::Key key) const {
    const base::GroupedKeys keys({key});
    float value = 0;
    EXPECT_EQ(sparse->Pull(keys.view(), base::StepKind::kInfer, {&value, 1, 1}), absl::OkStatus());
    return value;
  }

  std::unique_ptr<table::SparseTable> sparse;
  std::unique_ptr<table::DenseTable> dense;
  std::unique_ptr<client::LocalClient> client;
  std::unique_ptr<comm::Local> local;
  TrainerOptions options;
};

// Counts steps between Pull and Commit, and fails a chosen commit.
class Counting : public comm::Communicator {
 public:
  explicit Counting(comm::Communicator& inner) : inner_(inner) {}
  absl::Status BeginPass(const base::PassKeys& keys) override { return inner_.BeginPass(keys); }
  absl::Status Prefetch(const base::StepKeys& keys) override { return inner_.Prefetch(keys); }
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override {
    if (++in_flight >= meet) met_ = true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!met_) {
      if (std::chrono::steady_clock::now() > deadline)
        return absl::DeadlineExceededError(absl::StrCat(in_flight.load(), " steps are in flight, not ", meet));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return inner_.Pull(keys, rows);
  }
  absl::Status Commit(const base::StepGrads& grads) override {
    absl::Status status = inner_.Commit(grads);
    --in_flight;
    if (grads.batch == fail_at) return absl::UnavailableError("server 3 is gone");
    return status;
  }
  std::vector<comm::RowWidths> widths() const override { return wrong_widths.empty() ? inner_.widths() : wrong_widths; }
  comm::Traits traits() const override { return {.prefetches = ahead, .batches_a_push = batches}; }
  absl::Status Flush() override { return inner_.Flush(); }
  absl::Status LeavePass() override { return inner_.LeavePass(); }
  absl::Status EndPass() override { return inner_.EndPass(); }
  void Abort(const absl::Status& status) override { inner_.Abort(status); }

  std::atomic<int> in_flight{0};
  int meet = 0;  // the first pulls wait until so many steps are in flight
  uint64_t fail_at = UINT64_MAX;
  int batches = 1;
  bool ahead = false;
  std::vector<comm::RowWidths> wrong_widths;  // in place of the tables' own

 private:
  comm::Communicator& inner_;
  std::atomic<bool> met_{false};
};

struct Watcher : PassObserver {
  StepAction AfterStep(const Step& step) override {
    seen.insert(step.result.batch->index);
    bad_rows += step.result.bad_rows;
    bad_dense += step.result.bad_dense ? 1 : 0;
    ++steps;
    if (steps == stop_after) return StepAction::kStop;
    return pause_every != 0 && steps % pause_every == 0 ? StepAction::kPause : StepAction::kGoOn;
  }
  absl::Status AtPause(const base::DataPosition& position) override {
    ++pauses;
    if (counting != nullptr) {
      EXPECT_EQ(counting->in_flight, 0);
    }
    for (uint64_t batch : seen) EXPECT_TRUE(position.Contains(batch)) << batch;
    EXPECT_EQ(position.batches(), seen.size());
    return pause_status;
  }
  absl::Status AtEnd(const PassEnd&) override {
    ++ends;
    return absl::OkStatus();
  }
  absl::Status OnBadLoss(const data::Batch& batch, absl::Status) override {
    return absl::AbortedError(absl::StrCat("bad batch ", batch.index));
  }
  bool StopsHere() override { return pauses == stop_at_pause; }
  bool StopAsked() override { return stop_asked; }

  std::atomic<bool> stop_asked{false};
  int stop_at_pause = -1;  // 0 = before the first step

  std::set<uint64_t> seen;
  uint64_t bad_rows = 0, bad_dense = 0;
  uint64_t steps = 0, stop_after = UINT64_MAX, pause_every = 0;
  int pauses = 0, ends = 0;
  absl::Status pause_status;
  Counting* counting = nullptr;
};

}  // namespace regatta::train::testing
