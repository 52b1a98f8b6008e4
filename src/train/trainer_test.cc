#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "client/local_client.h"
#include "comm/local.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::train {
namespace {

// A logit that is the sum of a sample's embedding and a bias.
class Sum : public model::Model {
 public:
  Sum() {
    spec_.schema.sparse_slots = {"1", "2"};
    spec_.AddEmbedding({.table = "embedding", .dim = 1, .init = model::Init::Constant(0)});
    spec_.AddDense("bias", {1}, model::Init::Constant(0));
  }
  model::Output Forward(const model::Input& in) const override {
    return model::BinaryOutput(in.embeddings[0].sum(1) + in.dense[0], in.labels);
  }
};

// Batches of 4 samples, made on the spot; batch `bad` has a label that is not a number.
class Numbers : public data::Dataset {
 public:
  explicit Numbers(uint64_t batches, uint64_t bad = UINT64_MAX) : batches_(batches), bad_(bad) {}

  absl::Status BeginPass(const base::DataPosition& done) override {
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
      batch->labels.push_back(batch->index == bad_ ? std::nanf("") : static_cast<float>(s % 2));
    }
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
  explicit Embedded(int threads, table::NanPolicy nan_policy = table::NanPolicy::kAbort) {
    table::SparseTableConfig sparse_config;
    sparse_config.name = "embedding";
    sparse_config.dim = 1;
    sparse_config.rule.name = "sgd";
    sparse = *table::SparseTable::Create(sparse_config);
    table::DenseTableConfig dense_config;
    dense_config.parameters = {{"bias", {1}, {"constant", 0, 0}}};
    dense_config.rule.name = "sgd";
    dense = *table::DenseTable::Create(dense_config);
    client =
        std::make_unique<client::LocalClient>(std::vector<table::SparseTable*>{sparse.get()}, dense.get(), nan_policy);
    local = std::make_unique<comm::Local>(*client, threads);
    options.threads = threads;
  }
  Sum model;
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
    ++in_flight;
    return inner_.Pull(keys, rows);
  }
  absl::Status Commit(const base::StepGrads& grads) override {
    absl::Status status = inner_.Commit(grads);
    --in_flight;
    if (grads.batch == fail_at) return absl::UnavailableError("server 3 is gone");
    return status;
  }
  bool prefetches() const override { return ahead; }
  int batches_a_push() const override { return batches; }
  absl::Status Flush() override { return inner_.Flush(); }
  absl::Status LeavePass() override { return inner_.LeavePass(); }
  absl::Status EndPass() override { return inner_.EndPass(); }

  std::atomic<int> in_flight{0};
  uint64_t fail_at = UINT64_MAX;
  int batches = 1;
  bool ahead = false;

 private:
  comm::Communicator& inner_;
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
    EXPECT_EQ(position.low + std::popcount(position.window), seen.size());
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

TEST(Trainer, AStopEndsTheWaitForData) {
  for (const int threads : {1, 3}) {
    Embedded setup(threads);
    Numbers data(20);
    data.hang_at = 5;
    Watcher watcher;
    data.at_hang = &watcher.stop_asked;  // heeded by those who wait only: the five batches that came are trained on
    Trainer trainer(setup.model, *setup.local, setup.options);
    const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_FALSE(end->complete);
    EXPECT_EQ(end->position.low, 5u);
    data.hang_at = UINT64_MAX;
    watcher.stop_asked = false;
    const auto rest = trainer.RunPass(data, base::StepKind::kTrain, end->position, 0, watcher);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_TRUE(rest->complete);
    EXPECT_EQ(watcher.seen.size(), 20u);
  }
}

// A model whose output a test makes up, from a sum that is right.
class Odd : public Sum {
 public:
  using Make = std::function<model::Output(const model::Input& in, const model::Output& right)>;
  explicit Odd(Make make) : make_(std::move(make)) {}
  model::Output Forward(const model::Input& in) const override { return make_(in, Sum::Forward(in)); }

 private:
  const Make make_;
};

TEST(Trainer, AnOutputThatCannotBeIsAnError) {
  using model::Input;
  using model::Output;
  const std::pair<Odd::Make, std::string> cases[] = {
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions.repeat({2}).reshape({4, 2})};
       },
       "the model's prediction has the shape [4, 2]; it must have the shape [4]"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions.slice(0, 0, 2)};
       },
       "the shape [2]"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss.unsqueeze(1), o.predictions};
       },
       "the model's loss has the shape [4, 1]"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss.mean(), o.predictions};
       },
       "the shape []"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, {}};
       },
       "prediction is not set"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions.to(torch::kFloat64)};
       },
       "has the type Double"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions * 0 + 3};
       },
       "prediction for sample 0 is 3; it must be a probability from 0 to 1"},
      {[](const Input&, const Output& o) -> Output {
         return {o.loss, o.predictions * std::nanf("")};
       },
       "prediction for sample 0 is nan"},
      {[](const Input& in, const Output& o) -> Output {
         return {torch::matmul(in.features, o.loss), o.loss};
       },
       "the model failed: "},
      {[](const Input&, const Output&) -> Output { throw 7; }, "it threw something that is no std::exception"},
  };
  for (const auto& [make, found] : cases)
    for (const base::StepKind kind : {base::StepKind::kTrain, base::StepKind::kInfer}) {
      Embedded setup(1);
      const Odd odd(make);
      Numbers data(3);
      Watcher watcher;
      const auto end = Trainer(odd, *setup.local, setup.options).RunPass(data, kind, {}, 0, watcher);
      EXPECT_THAT(std::string(end.status().message()), testing::HasSubstr(found));
      EXPECT_THAT(std::string(end.status().message()), testing::Not(testing::HasSubstr("frame #"))) << "C++ frames";
      EXPECT_EQ(setup.sparse->rows(), 0u) << found;
    }
}

TEST(Trainer, ARowOfAnotherWidthThanTheModelReadsIsAnError) {
  Embedded setup(1);
  class Wide : public Sum {
   public:
    Wide() { spec_.embeddings[0].dim = 3; }
  } wide;
  Numbers data(3);
  Watcher watcher;
  const auto end = Trainer(wide, *setup.local, setup.options).RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  EXPECT_THAT(std::string(end.status().message()), testing::HasSubstr("rows of 1 floats, and the model reads 3"));
}

TEST(Trainer, OneThreadWalksEveryBatchInOrder) {
  Embedded setup(1);
  Numbers data(20);
  Watcher watcher;
  Trainer trainer(setup.model, *setup.local, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->complete);
  EXPECT_EQ(end->position.low, 20u);
  EXPECT_EQ(watcher.steps, 20u);
  EXPECT_EQ(setup.sparse->rows(), 14u);
  EXPECT_EQ(setup.dense->updates(), 20u);
}

TEST(Trainer, InferenceChangesNothing) {
  Embedded setup(2);
  Numbers data(20);
  Watcher watcher;
  Trainer trainer(setup.model, *setup.local, setup.options);
  ASSERT_TRUE(trainer.RunPass(data, base::StepKind::kInfer, {}, 0, watcher).ok());
  EXPECT_EQ(watcher.steps, 20u);
  EXPECT_EQ(setup.sparse->rows(), 0u);
  EXPECT_EQ(setup.dense->updates(), 0u);
}

TEST(Trainer, ManyThreadsPauseWithNoStepInFlight) {
  Embedded setup(4);
  Numbers data(400);
  Counting counting(*setup.local);
  Watcher watcher;
  watcher.pause_every = 7;
  watcher.counting = &counting;
  Trainer trainer(setup.model, counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(watcher.seen.size(), 400u);
  EXPECT_EQ(setup.dense->updates(), 400u);
  EXPECT_GT(watcher.pauses, 10);
}

TEST(Trainer, APauseComesBetweenTwoPushes) {
  Embedded setup(3);
  Numbers data(400);
  Counting counting(*setup.local);
  counting.batches = 5;
  struct Aligned : Watcher {
    absl::Status AtPause(const base::DataPosition& position) override {
      EXPECT_EQ(position.window, 0u);
      EXPECT_EQ(position.low % 5, 0u);
      return Watcher::AtPause(position);
    }
  } watcher;
  watcher.pause_every = 7;
  watcher.counting = &counting;
  Trainer trainer(setup.model, counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(watcher.seen.size(), 400u);
  EXPECT_GT(watcher.pauses, 10);
  EXPECT_EQ(watcher.ends, 1);
}

// Where workers agree on it, a pass ends at a pause, with no batch more, or before its first.
TEST(Trainer, APassEndsAtAPauseWhereItIsToldTo) {
  for (const int threads : {1, 3}) {
    Embedded setup(threads);
    Numbers data(400);
    Counting counting(*setup.local);
    counting.batches = 5;
    Watcher watcher;
    watcher.pause_every = 7;
    watcher.stop_at_pause = 2;
    watcher.counting = &counting;
    Trainer trainer(setup.model, counting, setup.options);
    const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_FALSE(end->complete);
    EXPECT_EQ(watcher.pauses, 2);
    EXPECT_EQ(end->position.low, watcher.seen.size());
    EXPECT_EQ(end->position.low % 5, 0u);
    const auto none = trainer.RunPass(data, base::StepKind::kTrain, end->position, 0, watcher);
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_FALSE(none->complete);
    EXPECT_EQ(none->position.low, end->position.low);
    EXPECT_EQ(watcher.seen.size(), end->position.low);
    EXPECT_EQ(watcher.ends, 2);
  }
}

TEST(Trainer, APauseThatTheDataDoesNotReachIsNone) {
  Embedded setup(2);
  Numbers data(8);
  Counting counting(*setup.local);
  counting.batches = 5;
  Watcher watcher;
  watcher.pause_every = 7;
  Trainer trainer(setup.model, counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->complete);
  EXPECT_EQ(watcher.seen.size(), 8u);
  EXPECT_EQ(watcher.pauses, 0);
}

TEST(Trainer, AStoppedPassGoesOnWhereItWas) {
  Embedded setup(3);
  Numbers data(100);
  Trainer trainer(setup.model, *setup.local, setup.options);
  Watcher first;
  first.stop_after = 30;
  const auto stopped = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, first);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(stopped->complete);
  Watcher second;
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, stopped->position, 0, second);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->complete);
  EXPECT_EQ(first.seen.size() + second.seen.size(), 100u);
  EXPECT_EQ(setup.dense->updates(), 100u);
}

// A thread holds its next batch while another one meets the end.
TEST(Trainer, BatchesThatAreFetchedAheadAreTrainedOn) {
  for (const int threads : {1, 2, 3, 4}) {
    for (const uint64_t batches : {1, 2, 3, 5, 20, 100}) {
      for (int round = 0; round < 10; ++round) {
        Embedded setup(threads);
        Numbers data(batches);
        Counting counting(*setup.local);
        counting.ahead = true;
        Watcher watcher;
        watcher.pause_every = round % 2 == 0 ? 0 : 3;
        watcher.counting = &counting;
        Trainer trainer(setup.model, counting, setup.options);
        const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
        ASSERT_TRUE(end.ok()) << end.status();
        EXPECT_TRUE(end->complete);
        EXPECT_EQ(end->position.low, batches);
        EXPECT_EQ(watcher.seen.size(), batches) << threads << " threads";
      }
    }
  }
}

// A stop among the last batches: either all have been trained on, or the pass says that some are left.
TEST(Trainer, AStopNearTheEndLosesNoBatchThatWasFetchedAhead) {
  for (uint64_t stop_after = 10; stop_after <= 20; ++stop_after) {
    for (int round = 0; round < 10; ++round) {
      Embedded setup(3);
      Numbers data(20);
      Counting counting(*setup.local);
      counting.ahead = true;
      Trainer trainer(setup.model, counting, setup.options);
      Watcher first;
      first.stop_after = stop_after;
      const auto stopped = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, first);
      ASSERT_TRUE(stopped.ok()) << stopped.status();
      if (stopped->complete) {
        EXPECT_EQ(first.seen.size(), 20u);
        continue;
      }
      Watcher second;
      const auto end = trainer.RunPass(data, base::StepKind::kTrain, stopped->position, 0, second);
      ASSERT_TRUE(end.ok()) << end.status();
      EXPECT_EQ(first.seen.size() + second.seen.size(), 20u);
      EXPECT_EQ(setup.dense->updates(), 20u);
    }
  }
}

TEST(Trainer, AFailedCommitEndsThePassWithItsError) {
  Embedded setup(3);
  Numbers data(100);
  Counting counting(*setup.local);
  counting.fail_at = 40;
  Watcher watcher;
  Trainer trainer(setup.model, counting, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  EXPECT_EQ(end.status().code(), absl::StatusCode::kUnavailable) << end.status();
}

TEST(Trainer, GradientsThatAreNotNumbersAreCounted) {
  // √0 has an infinite slope: the loss is finite, the gradient of what is below the root is not.
  const auto root = [](const torch::Tensor& x) { return (x - x.detach()).sqrt(); };
  const Odd rows([&](const model::Input& in, const model::Output& right) {
    return model::Output{right.loss + root(in.embeddings[0].select(1, 0)), right.predictions};
  });
  const Odd dense([&](const model::Input& in, const model::Output& right) {
    return model::Output{right.loss + root(in.dense[0]), right.predictions};
  });
  Numbers data(5);
  for (const bool of_rows : {true, false}) {
    Embedded setup(1, table::NanPolicy::kSkip);
    Watcher watcher;
    const auto end = Trainer(of_rows ? rows : dense, *setup.local, setup.options)
                         .RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(watcher.bad_rows, of_rows ? 5u * 4 : 0u);  // the first slot's ids of every batch
    EXPECT_EQ(watcher.bad_dense, of_rows ? 0u : 5u);
    EXPECT_EQ(setup.sparse->skipped_gradients(), watcher.bad_rows);
    EXPECT_EQ(setup.dense->skipped_gradients(), watcher.bad_dense);
  }
}

TEST(Trainer, ALossThatIsNotANumberCommitsNothingOfItsStep) {
  Embedded setup(1);
  Numbers data(10, /*bad=*/4);
  Watcher watcher;
  Trainer trainer(setup.model, *setup.local, setup.options);
  const auto end = trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher);
  EXPECT_EQ(end.status().message(), "bad batch 4");
  EXPECT_EQ(setup.dense->updates(), 4u);
}

TEST(Trainer, AFailedPauseEndsThePass) {
  Embedded setup(2);
  Numbers data(50);
  Watcher watcher;
  watcher.pause_every = 5;
  watcher.pause_status = absl::DataLossError("no disk");
  Trainer trainer(setup.model, *setup.local, setup.options);
  EXPECT_EQ(trainer.RunPass(data, base::StepKind::kTrain, {}, 0, watcher).status().message(), "no disk");
  EXPECT_EQ(watcher.pauses, 1);
}

}  // namespace
}  // namespace regatta::train
