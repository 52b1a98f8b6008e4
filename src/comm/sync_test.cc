#include "comm/sync.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/testing/in_process_job.h"
#include "comm/testing/small_step.h"

namespace regatta::comm {
namespace {

constexpr base::Key kSyncRow = 1;

// Worker r has 2^r samples a batch, a row of its own and one that all share. With 3 workers a step has 7 samples, and
// one of worker 0 makes 8: sums of eighths are exact.
SmallStep SyncStepOf(int rank, uint64_t batch) {
  const auto value = static_cast<float>(rank + 1) + static_cast<float>(batch);
  return {.grads = {{kSyncRow, value}, {10 + static_cast<base::Key>(rank), 2 * value}},
          .dense = {value, -value},
          .samples = rank == 0 ? 2u : static_cast<uint32_t>(1 << rank)};
}

// w after so many steps: every step moves it by the sum over workers divided by the sum of their samples.
struct SyncFormula {
  std::map<base::Key, float> rows;
  std::vector<float> dense{0, 0};

  float Row(base::Key key) const {  // a row that no step has named is 0
    const auto row = rows.find(key);
    return row == rows.end() ? 0 : row->second;
  }
  void Step(const std::vector<SmallStep>& parts) {
    float samples = 0;
    for (const SmallStep& part : parts) samples += static_cast<float>(part.samples);
    for (const SmallStep& part : parts) {
      for (const auto& [key, grad] : part.grads) rows[key] -= grad / samples;
      for (size_t i = 0; i < dense.size(); ++i) dense[i] -= part.dense[i] / samples;
    }
  }
};

TEST(Sync, AStepMovesARowByTheSumOverWorkersDividedByAllSamples) {
  constexpr int kWorkers = 3;
  constexpr uint64_t kSteps = 6;
  InProcessJob job(base::Mode::kSync, kWorkers, SmallTables());
  std::vector<SyncFormula> before(1);  // before[t]: as a pull of step t must see it
  for (uint64_t t = 0; t < kSteps; ++t) {
    before.push_back(before.back());
    before.back().Step({SyncStepOf(0, t), SyncStepOf(1, t), SyncStepOf(2, t)});
  }
  const absl::Status status = InThreads(kWorkers, [&](int rank) -> absl::Status {
    Sync sync(job.client(rank), job.agree(), 1, 0);
    RETURN_IF_ERROR(sync.BeginPass(SmallPass()));
    for (uint64_t t = 0; t < kSteps; ++t) {
      std::map<base::Key, float> pulled;
      RETURN_IF_ERROR(RunStep(sync, SyncStepOf(rank, t), t, 0, 0, &pulled));
      for (const auto& [key, value] : pulled) EXPECT_FLOAT_EQ(value, before[t].Row(key)) << rank << ", step " << t;
    }
    return sync.EndPass();
  });
  ASSERT_TRUE(status.ok()) << status;
  const std::map<base::Key, float> rows = job.rows();
  ASSERT_EQ(rows.size(), before.back().rows.size());
  for (const auto& [key, value] : before.back().rows) EXPECT_FLOAT_EQ(rows.at(key), value) << key;
  for (size_t i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(job.dense()[i], before.back().dense[i]);
}

TEST(Sync, ABatchOfEveryThreadIsOneStep) {
  InProcessJob job(base::Mode::kSync, 2, SmallTables());
  const absl::Status status = InThreads(2, [&](int rank) -> absl::Status {
    Sync sync(job.client(rank), job.agree(), 2, 0);
    EXPECT_EQ(sync.traits().batches_a_push, 2);
    RETURN_IF_ERROR(sync.BeginPass(SmallPass()));
    RETURN_IF_ERROR(InThreads(2, [&](int thread) -> absl::Status {
      for (uint64_t batch = static_cast<uint64_t>(thread); batch < 6; batch += 2)
        RETURN_IF_ERROR(RunStep(sync, {.grads = {{kSyncRow, 1}}, .dense = {1, 2}, .samples = 2}, batch, thread));
      return absl::OkStatus();
    }));
    return sync.EndPass();
  });
  ASSERT_TRUE(status.ok()) << status;
  // 3 steps; in each 4 batches with gradient 1 and 2 samples.
  EXPECT_EQ(job.rows(), (std::map<base::Key, float>{{kSyncRow, -1.5f}}));
  EXPECT_EQ(job.dense(), (std::vector<float>{-1.5f, -3.0f}));
  ASSERT_EQ(job.pushes().size(), 6u);
  for (const InProcessJob::Pushed& push : job.pushes())
    EXPECT_EQ(push.batches, (std::vector<uint64_t>{2 * push.step, 2 * push.step + 1}));
}

TEST(Sync, AWorkerThatHasNoMoreBatchesIsNotWaitedFor) {
  InProcessJob job(base::Mode::kSync, 2, SmallTables());
  const absl::Status status = InThreads(2, [&](int rank) -> absl::Status {
    Sync sync(job.client(rank), job.agree(), 1, 0);
    RETURN_IF_ERROR(sync.BeginPass(SmallPass()));
    const uint64_t batches = rank == 0 ? 5 : 2;
    for (uint64_t batch = 0; batch < batches; ++batch)
      RETURN_IF_ERROR(RunStep(sync, {.grads = {{kSyncRow, 1}}, .dense = {1, 1}}, batch));
    return sync.EndPass();
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(job.rows().at(kSyncRow), -5);  // 2 steps with the mean of two, 3 of worker 0 alone
}

TEST(Sync, APassBeginsWhereTheWorkerWithTheMostStepsWas) {
  InProcessJob job(base::Mode::kSync, 2, SmallTables());
  const absl::Status status = InThreads(2, [&](int rank) -> absl::Status {
    Sync sync(job.client(rank), job.agree(), 1, 0);
    for (uint64_t pass = 0; pass < 2; ++pass) {
      RETURN_IF_ERROR(sync.BeginPass(SmallPass(pass)));
      for (uint64_t batch = 0; batch < (rank == 0 ? 4u : 1u); ++batch)
        RETURN_IF_ERROR(RunStep(sync, {.grads = {{kSyncRow, 1}}, .dense = {1, 1}}, batch, 0, pass));
      RETURN_IF_ERROR(sync.EndPass());
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  std::map<uint64_t, int> steps;
  for (const InProcessJob::Pushed& push : job.pushes()) ++steps[push.step];
  EXPECT_EQ(steps, (std::map<uint64_t, int>{{0, 2}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 1}, {6, 1}, {7, 1}}));
}

TEST(Sync, AbortEndsTheWaitOfTheOtherThreads) {
  InProcessJob job(base::Mode::kSync, 1, SmallTables());
  Sync sync(job.client(0), job.agree(), 2, 0);
  ASSERT_TRUE(sync.BeginPass(SmallPass()).ok());
  absl::Status waited;
  std::thread other([&] { waited = RunStep(sync, {.grads = {{kSyncRow, 1}}, .dense = {1, 1}}, 3, 1); });  // of step 1
  sync.Abort(absl::DataLossError("batch 2 is broken"));
  other.join();
  EXPECT_EQ(waited.message(), "batch 2 is broken");
}

TEST(Sync, FlushReturnsWhenTheServersHaveEveryCommit) {
  InProcessJob job(base::Mode::kSync, 1, SmallTables());
  Sync sync(job.client(0), job.agree(), 1, 0);
  ASSERT_TRUE(sync.BeginPass(SmallPass()).ok());
  job.SetHeld(true);
  ASSERT_TRUE(sync.Commit(StepViews({.grads = {{kSyncRow, 1}}, .dense = {1, 1}}, 0, 0).grads()).ok());
  std::atomic<bool> flushed{false};
  std::thread flush([&] {
    EXPECT_TRUE(sync.Flush().ok());
    flushed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(flushed);
  job.SetHeld(false);
  flush.join();
  EXPECT_EQ(job.rows().at(kSyncRow), -1);
  EXPECT_EQ(job.dense()[0], -1);
}

TEST(Sync, AWorkerThatComesBackGoesOnBehindWhatAllLanesHave) {
  InProcessJob job(base::Mode::kSync, 1, SmallTables());
  {
    Sync sync(job.client(0), job.agree(), 1, 0);
    ASSERT_TRUE(sync.BeginPass(SmallPass()).ok());
    for (uint64_t batch = 0; batch < 3; ++batch)
      ASSERT_TRUE(RunStep(sync, {.grads = {{kSyncRow, 1}}, .dense = {1, 1}}, batch).ok());
    ASSERT_TRUE(sync.Flush().ok());
  }
  Sync sync(job.client(0), job.agree(), 1, 0, Resumed{.pass = 0, .step = 3, .dense = {}});
  ASSERT_TRUE(sync.BeginPass(SmallPass(0, 3)).ok());
  for (uint64_t batch = 3; batch < 5; ++batch)
    ASSERT_TRUE(RunStep(sync, {.grads = {{kSyncRow, 1}}, .dense = {1, 1}}, batch).ok());
  ASSERT_TRUE(sync.EndPass().ok());
  EXPECT_EQ(job.rows().at(kSyncRow), -5);
  ASSERT_EQ(job.pushes().size(), 5u);
  EXPECT_EQ(job.pushes()[3].step, 3u);
}

TEST(Sync, AnErrorOfTheServersEndsThePass) {
  InProcessJob job(base::Mode::kSync, 1, SmallTables());
  Sync sync(job.client(0), job.agree(), 1, 0);
  ASSERT_TRUE(sync.BeginPass(SmallPass()).ok());
  job.Break(absl::UnavailableError("server 0 is gone"));
  ASSERT_TRUE(sync.Commit(StepViews({.grads = {{kSyncRow, 1}}, .dense = {1, 1}}, 0, 0).grads()).ok());
  EXPECT_EQ(sync.EndPass().message(), "server 0 is gone");
}

}  // namespace
}  // namespace regatta::comm
