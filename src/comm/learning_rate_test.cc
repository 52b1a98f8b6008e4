// A commit's learning rate in every mode, against the rules' formulas. tables: sgd, whose result is a line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "comm/async.h"
#include "comm/geo.h"
#include "comm/half_async.h"
#include "comm/local.h"
#include "comm/sync.h"
#include "comm/testing/in_process_job.h"
#include "comm/testing/small_step.h"

namespace regatta::comm {
namespace {

using ::testing::HasSubstr;

constexpr base::Key kRatedRow = 5;

table::ModelConfig TablesWith(const std::string& rule) {
  table::ModelConfig config = SmallTables(1);
  config.sparse[0].rule.name = config.dense.rule.name = rule;
  return config;
}

// Gradients of batch b and the rates that it brings: none every third batch, otherwise falling.
std::optional<float> RateOf(uint64_t batch) {
  if (batch % 3 == 2) return std::nullopt;
  return 1.0f / static_cast<float>(2 + batch);
}
float SumOf(uint64_t batch) { return static_cast<float>(batch + 1); }
SmallStep RatedStep(uint64_t batch) {
  SmallStep step{.grads = {{kRatedRow, SumOf(batch)}}, .dense = {-SumOf(batch)}, .samples = 2};
  step.rate = RateOf(batch);
  step.dense_rate = RateOf(batch).has_value() ? std::optional<float>(*RateOf(batch) / 2) : std::nullopt;
  return step;
}

// The rules as docs/rules.md has them, in double: one row, one dense parameter. The tables' own rate is 1.
struct Formula {
  explicit Formula(const std::string& rule) : adagrad(rule == "adagrad") {}
  void Row(double gradient, double rate) {
    row -= rate * gradient * (adagrad ? std::sqrt(3 / (3 + row_g2)) : 1);
    row_g2 += gradient * gradient;
  }
  void Dense(double gradient, double rate) {
    dense_g2 += gradient * gradient;
    dense -= rate * gradient / (adagrad ? std::sqrt(dense_g2) + 1e-6 : 1);
  }
  // Batches first to last as one push.
  void Row(uint64_t first, uint64_t last) {
    double sum = 0, samples = 0;
    for (uint64_t batch = first; batch <= last; ++batch) sum += SumOf(batch), samples += 2;
    Row(sum / samples, RatedStep(first).rate.value_or(1));
  }
  void Dense(uint64_t first, uint64_t last) {
    double sum = 0, samples = 0;
    for (uint64_t batch = first; batch <= last; ++batch) sum -= SumOf(batch), samples += 2;
    Dense(sum / samples, RatedStep(first).dense_rate.value_or(1));
  }
  void Step(uint64_t batch) {
    Row(batch, batch);
    Dense(batch, batch);
  }

  const bool adagrad;
  double row = 0, dense = 0, row_g2 = 0, dense_g2 = 0;
};

absl::Status RunRated(Communicator& comm, uint64_t batches) {
  RETURN_IF_ERROR(comm.BeginPass(SmallPass()));
  for (uint64_t batch = 0; batch < batches; ++batch) RETURN_IF_ERROR(RunStep(comm, RatedStep(batch), batch));
  return comm.EndPass();
}

// Commits with rates that cannot be: refused, and nothing of them is kept.
void ExpectRefusesBadRates(Communicator& comm) {
  ASSERT_TRUE(comm.BeginPass(SmallPass()).ok());
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float rate : {std::nanf(""), -1.0f, kInf, -kInf, 2e6f}) {
    SmallStep step{.grads = {{kRatedRow, 1}}, .dense = {1}};
    step.rate = rate;
    EXPECT_EQ(RunStep(comm, step, 0).code(), absl::StatusCode::kInvalidArgument) << rate;
    step.rate.reset();
    step.dense_rate = rate;
    const absl::Status refused = RunStep(comm, step, 0);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << rate;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("dense"));
  }
  ASSERT_TRUE(comm.EndPass().ok());
}

class RatedTest : public testing::TestWithParam<std::string> {
 protected:
  const std::string rule_ = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Rules, RatedTest, testing::Values("sgd", "adagrad"),
                         [](const auto& info) { return info.param; });

TEST_P(RatedTest, LocalTakesTheRateOfEveryCommit) {
  const table::ModelConfig config = TablesWith(rule_);
  const auto sparse = table::SparseTable::Create(config.sparse[0]).value();
  const auto dense = table::DenseTable::Create(config.dense).value();
  client::LocalClient client({sparse.get()}, dense.get(), table::NanPolicy::kSkip);
  Local local(client, 1);
  ASSERT_TRUE(RunRated(local, 7).ok());
  Formula want(rule_);
  for (uint64_t batch = 0; batch < 7; ++batch) want.Step(batch);
  std::map<base::Key, float> pulled;
  ASSERT_TRUE(RunStep(local, {.grads = {{kRatedRow, 0}}, .dense = {0}}, 7, 0, 0, &pulled).ok());
  EXPECT_NEAR(pulled.at(kRatedRow), want.row, 1e-4);
  EXPECT_NEAR(dense->Values()[0], want.dense, 1e-4);
  const uint64_t updates = dense->updates();
  ExpectRefusesBadRates(local);
  EXPECT_EQ(dense->updates(), updates);
}

TEST_P(RatedTest, SyncTakesTheRateOfEveryStep) {
  InProcessJob job(base::Mode::kSync, 2, TablesWith(rule_));
  const absl::Status status = InThreads(2, [&](int rank) {
    Sync sync(job.client(rank), job.agree(), 1, 0);
    return RunRated(sync, 7);  // both bring the same: the mean is that of one
  });
  ASSERT_TRUE(status.ok()) << status;
  Formula want(rule_);
  for (uint64_t batch = 0; batch < 7; ++batch) want.Step(batch);
  EXPECT_NEAR(job.rows().at(kRatedRow), want.row, 1e-4);
  EXPECT_NEAR(job.dense()[0], want.dense, 1e-4);
}

TEST_P(RatedTest, AsyncWithoutAWindowTakesTheRateOfEveryStep) {
  InProcessJob job(base::Mode::kAsync, 1, TablesWith(rule_));
  Async async(job.client(0), 1, 0);
  ASSERT_TRUE(RunRated(async, 7).ok());
  Formula want(rule_);
  for (uint64_t batch = 0; batch < 7; ++batch) want.Step(batch);
  EXPECT_NEAR(job.rows().at(kRatedRow), want.row, 1e-4);
  EXPECT_NEAR(job.dense()[0], want.dense, 1e-4);
}

// 10 batches in groups of 4 whose rates differ: every batch is a push of its own.
TEST_P(RatedTest, HalfAsyncDoesNotAddUpBatchesWithDifferentRates) {
  InProcessJob job(base::Mode::kHalfAsync, 1, TablesWith(rule_));
  HalfAsync half(job.client(0), 1, 4, 2);
  ASSERT_TRUE(RunRated(half, 10).ok());
  Formula want(rule_);
  for (uint64_t batch = 0; batch < 10; ++batch) want.Step(batch);
  EXPECT_NEAR(job.rows().at(kRatedRow), want.row, 1e-4);
  EXPECT_NEAR(job.dense()[0], want.dense, 1e-4);
  std::vector<std::vector<uint64_t>> batches;
  std::vector<uint64_t> steps;
  for (const InProcessJob::Pushed& push : job.pushes()) {
    EXPECT_EQ(push.rate, RateOf(push.batches.front()));
    batches.push_back(push.batches);
    steps.push_back(push.step);
  }
  EXPECT_EQ(batches, (std::vector<std::vector<uint64_t>>{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}}));
  EXPECT_EQ(steps, (std::vector<uint64_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2}));
}

// The replica of a worker that is alone is the model: the servers get what it has changed.
TEST_P(RatedTest, GeoTrainsItsReplicaWithTheRateOfEveryCommit) {
  InProcessJob job(base::Mode::kGeo, 1, TablesWith(rule_));
  const auto geo = Geo::Create(job.client(0), TablesWith(rule_), {.threads = 1, .workers = 1}).value();
  ASSERT_TRUE(RunRated(*geo, 7).ok());
  Formula want(rule_);
  for (uint64_t batch = 0; batch < 7; ++batch) want.Step(batch);
  EXPECT_NEAR(job.rows().at(kRatedRow), want.row, 1e-4);
  EXPECT_NEAR(job.dense()[0], want.dense, 1e-4);
}

TEST(LearningRate, HalfAsyncAddsUpTheBatchesOfAGroupWithTheSameRates) {
  InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables(1));
  HalfAsync half(job.client(0), 1, 4, 2);
  ASSERT_TRUE(half.BeginPass(SmallPass()).ok());
  for (uint64_t batch = 0; batch < 8; ++batch) {  // the rate changes in the middle of the first group
    SmallStep step{.grads = {{kRatedRow, -1}}, .dense = {-1}};
    step.rate = step.dense_rate = batch < 3 ? 0.5f : 0.25f;
    ASSERT_TRUE(RunStep(half, step, batch).ok());
  }
  ASSERT_TRUE(half.EndPass().ok());
  std::vector<std::vector<uint64_t>> batches;
  for (const InProcessJob::Pushed& push : job.pushes()) batches.push_back(push.batches);
  EXPECT_EQ(batches, (std::vector<std::vector<uint64_t>>{{0, 1, 2}, {3}, {4, 5, 6, 7}}));
  EXPECT_EQ(job.rows().at(kRatedRow), 0.5f + 0.25f + 0.25f) << "each push moves the row by its rate";
}

// Threads whose rates change every five batches: no exchange of dense parameters holds two rates.
TEST(LearningRate, AsyncDoesNotAddUpDenseGradientsWithDifferentRates) {
  constexpr int kThreads = 3;
  constexpr uint64_t kBatches = 60;
  const auto rate_of = [](uint64_t batch) {
    return batch / 5 % 4 == 3 ? std::nullopt : std::optional<float>(1.0f / static_cast<float>(1 + batch / 5));
  };
  InProcessJob job(base::Mode::kAsync, 1, SmallTables(1));
  Async async(job.client(0), kThreads, 4);
  ASSERT_TRUE(async.BeginPass(SmallPass()).ok());
  const absl::Status status = InThreads(kThreads, [&](int thread) -> absl::Status {
    for (auto batch = static_cast<uint64_t>(thread); batch < kBatches; batch += kThreads) {
      SmallStep step{.grads = {{kRatedRow, -1}}, .dense = {-static_cast<float>(batch)}};
      step.rate = step.dense_rate = rate_of(batch);
      RETURN_IF_ERROR(RunStep(async, step, batch, thread));
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(async.EndPass().ok());
  double row = 0, dense = 0;
  for (uint64_t batch = 0; batch < kBatches; ++batch) row += rate_of(batch).value_or(1);
  EXPECT_NEAR(job.rows().at(kRatedRow), row, 1e-4);
  std::map<uint64_t, int> seen;
  for (const InProcessJob::Pushed& push : job.dense_pushes()) {
    double sum = 0;
    for (const uint64_t batch : push.batches) {
      ++seen[batch];
      EXPECT_EQ(rate_of(batch), push.rate) << batch;
      sum += static_cast<double>(batch);
    }
    dense += push.rate.value_or(1) * sum / static_cast<double>(push.batches.size());
  }
  EXPECT_EQ(seen.size(), kBatches);
  for (const auto& [batch, times] : seen) EXPECT_EQ(times, 1) << batch;
  EXPECT_NEAR(job.dense()[0], dense, 1e-3);
}

TEST(LearningRate, ThreadsOfSyncThatBringDifferentRatesForAStepFail) {
  InProcessJob job(base::Mode::kSync, 1, SmallTables(1));
  Sync sync(job.client(0), job.agree(), 2, 0);
  ASSERT_TRUE(sync.BeginPass(SmallPass()).ok());
  SmallStep step{.grads = {{kRatedRow, -1}}, .dense = {-1}};
  step.rate = 0.5f;
  ASSERT_TRUE(RunStep(sync, step, 0, 0).ok());
  step.rate.reset();
  const absl::Status failed = RunStep(sync, step, 1, 1);
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(failed.message(),
            "batches 0 and 1 are one step, and bring for table 0 the learning rate 0.5 and no learning rate");
  EXPECT_TRUE(job.pushes().empty());
}

TEST(LearningRate, WorkersOfSyncThatBringDifferentRatesForAStepFail) {
  for (const bool dense : {false, true}) {
    InProcessJob job(base::Mode::kSync, 2, SmallTables(1));
    const absl::Status status = InThreads(2, [&](int rank) -> absl::Status {
      Sync sync(job.client(rank), job.agree(), 1, 0);
      RETURN_IF_ERROR(sync.BeginPass(SmallPass()));
      SmallStep step{.grads = {{kRatedRow, -1}}, .dense = {-1}};
      (dense ? step.dense_rate : step.rate) = rank == 0 ? 0.5f : 0.25f;
      RETURN_IF_ERROR(RunStep(sync, step, 0));
      const absl::Status pushed = sync.Flush();
      if (pushed.ok()) return absl::OkStatus();  // it came first
      EXPECT_EQ(pushed.code(), absl::StatusCode::kFailedPrecondition);
      return pushed;
    });
    EXPECT_THAT(std::string(status.message()), HasSubstr(dense ? "step 0, dense parameters: " : "step 0, table 0: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("worker 0 brings the learning rate 0.5"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("worker 1 brings the learning rate 0.25"));
    EXPECT_EQ(job.rows().size(), dense ? 1u : 0u) << "the lanes are judged one by one";
    EXPECT_EQ(job.dense()[0], dense ? 0.0f : 1.0f);
  }
}

TEST(LearningRate, OneThatCannotBeIsRefusedAndNothingIsPushed) {
  const auto expect_nothing = [](const InProcessJob& job) {
    EXPECT_TRUE(job.pushes().empty());
    EXPECT_TRUE(job.dense_pushes().empty());
    EXPECT_TRUE(job.rows().empty());
  };
  {
    InProcessJob job(base::Mode::kSync, 1, SmallTables(1));
    Sync sync(job.client(0), job.agree(), 1, 0);
    ExpectRefusesBadRates(sync);
    expect_nothing(job);
  }
  {
    InProcessJob job(base::Mode::kAsync, 1, SmallTables(1));
    Async async(job.client(0), 1, 4);
    ExpectRefusesBadRates(async);
    expect_nothing(job);
  }
  {
    InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables(1));
    HalfAsync half(job.client(0), 1, 1, 4);
    ExpectRefusesBadRates(half);
    expect_nothing(job);
  }
  {
    InProcessJob job(base::Mode::kGeo, 1, SmallTables(1));
    const auto geo = Geo::Create(job.client(0), SmallTables(1), {.threads = 1, .workers = 1}).value();
    ExpectRefusesBadRates(*geo);
    expect_nothing(job);
  }
}

}  // namespace
}  // namespace regatta::comm
