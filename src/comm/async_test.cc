#include "comm/async.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/testing/in_process_job.h"
#include "comm/testing/small_step.h"

namespace regatta::comm {
namespace {

// A row of its own for every batch, and dense gradients that tell which batches a sum holds.
SmallStep AsyncStepOf(int rank, uint64_t batch) {
  return {.grads = {{1, -1}, {1000 * static_cast<base::Key>(rank + 1) + batch, -1}},
          .dense = {1, static_cast<float>(batch * batch)},
          .samples = 3};
}

absl::Status RunAsyncPass(Async& async, int rank, int threads, uint64_t batches, uint64_t first = 0) {
  RETURN_IF_ERROR(async.BeginPass(SmallPass(0, first)));
  RETURN_IF_ERROR(InThreads(threads, [&](int thread) -> absl::Status {
    for (uint64_t batch = first + static_cast<uint64_t>(thread); batch < batches;
         batch += static_cast<uint64_t>(threads))
      RETURN_IF_ERROR(RunStep(async, AsyncStepOf(rank, batch), batch, thread));
    return absl::OkStatus();
  }));
  return async.EndPass();
}

TEST(Async, EveryPushIsAppliedOnceAndEveryDenseGradientIsMergedOnce) {
  constexpr int kWorkers = 3, kThreads = 3;
  constexpr uint64_t kBatches = 50;
  for (const uint64_t window : {0, 1, 4}) {
    SCOPED_TRACE(window);
    InProcessJob job(base::Mode::kAsync, kWorkers, SmallTables());
    const absl::Status status = InThreads(kWorkers, [&](int rank) {
      Async async(job.client(rank), kThreads, window);
      return RunAsyncPass(async, rank, kThreads, kBatches);
    });
    ASSERT_TRUE(status.ok()) << status;
    const std::map<base::Key, float> rows = job.rows();
    ASSERT_EQ(rows.size(), kWorkers * kBatches + 1);
    for (const auto& [key, value] : rows) EXPECT_NEAR(value, key == 1 ? kWorkers * kBatches / 3.0 : 1 / 3.0, 1e-3);
    std::vector<std::map<uint64_t, int>> seen(kWorkers);
    for (const InProcessJob::Pushed& push : job.dense_pushes()) {
      EXPECT_EQ(push.samples, 3 * push.batches.size());
      float count = 0, squares = 0;
      for (const uint64_t batch : push.batches) {
        ++seen[static_cast<size_t>(push.rank)][batch];
        count += 1;
        squares += static_cast<float>(batch * batch);
      }
      EXPECT_EQ(push.dense, (std::vector<float>{count, squares}));
    }
    for (const std::map<uint64_t, int>& batches : seen) {
      EXPECT_EQ(batches.size(), kBatches);
      for (const auto& [batch, times] : batches) EXPECT_EQ(times, 1) << batch;
    }
  }
}

TEST(Async, AThreadHasAtMostAWindowOfPushesThatAreNotAcknowledged) {
  InProcessJob job(base::Mode::kAsync, 1, SmallTables(0));
  Async async(job.client(0), 1, 3);
  EXPECT_TRUE(async.traits().prefetches);
  ASSERT_TRUE(async.BeginPass(SmallPass()).ok());
  job.SetHeld(true);
  const auto commit = [&](uint64_t batch) { return async.Commit(StepViews({{{1, -1}}, {}, 1}, batch, 0).grads()); };
  for (uint64_t batch = 0; batch < 3; ++batch) ASSERT_TRUE(commit(batch).ok());
  EXPECT_EQ(job.waiting(), 3u);
  std::atomic<bool> committed{false};
  std::thread fourth([&] {
    EXPECT_TRUE(commit(3).ok());
    committed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(committed);
  EXPECT_EQ(job.waiting(), 3u);
  job.SetHeld(false);
  fourth.join();
  ASSERT_TRUE(async.EndPass().ok());
  EXPECT_EQ(job.rows().at(1), 4);
}

TEST(Async, WithoutAWindowAStepIsAppliedWhenItsCommitReturns) {
  InProcessJob job(base::Mode::kAsync, 1, SmallTables());
  Async async(job.client(0), 1, 0);
  EXPECT_FALSE(async.traits().prefetches);
  ASSERT_TRUE(async.BeginPass(SmallPass()).ok());
  for (uint64_t batch = 0; batch < 5; ++batch) {
    ASSERT_TRUE(RunStep(async, {.grads = {{1, -1}}, .dense = {-1, 0}}, batch).ok());
    EXPECT_EQ(job.rows().at(1), static_cast<float>(batch + 1));
    EXPECT_EQ(job.dense()[0], static_cast<float>(batch + 1));
  }
}

TEST(Async, RowsThatWereFetchedAheadAreOneStepOld) {
  InProcessJob job(base::Mode::kAsync, 1, SmallTables());
  Async async(job.client(0), 1, 1);
  ASSERT_TRUE(async.BeginPass(SmallPass()).ok());
  const auto step = [](uint64_t batch) {
    return std::make_unique<StepViews>(SmallStep{.grads = {{1, -1}}, .dense = {}}, batch, 0);
  };
  const auto first = step(0), second = step(1), third = step(2);
  base::StepRows rows;
  ASSERT_TRUE(async.Pull(first->wanted(), &rows).ok());
  EXPECT_EQ(first->Read(rows).at(1), 0);
  ASSERT_TRUE(async.Prefetch(second->wanted()).ok());
  ASSERT_TRUE(async.Commit(first->grads()).ok());
  ASSERT_TRUE(async.Pull(second->wanted(), &rows).ok());
  EXPECT_EQ(second->Read(rows).at(1), 0);
  ASSERT_TRUE(async.Commit(second->grads()).ok());
  ASSERT_TRUE(async.Flush().ok());
  ASSERT_TRUE(async.Pull(third->wanted(), &rows).ok());  // not fetched ahead
  EXPECT_EQ(third->Read(rows).at(1), 2);
}

TEST(Async, AnErrorOfTheServersSurfacesLaterAndInEndPass) {
  InProcessJob job(base::Mode::kAsync, 1, SmallTables());
  Async async(job.client(0), 1, 2);
  ASSERT_TRUE(async.BeginPass(SmallPass()).ok());
  job.Break(absl::UnavailableError("server 0 is gone"));
  ASSERT_TRUE(async.Commit(StepViews(AsyncStepOf(0, 0), 0, 0).grads()).ok());
  EXPECT_EQ(async.EndPass().message(), "server 0 is gone");
}

// Of two servers one has the dense part of batch 1, both have that of batch 0, and none that of batch 2.
TEST(Async, AWorkerThatComesBackPushesADenseGradientOnlyIfAServerMissesIt) {
  InProcessJob job(base::Mode::kAsync, 1, SmallTables());
  Async async(job.client(0), 1, 0, Resumed{.pass = 0, .step = 0, .dense = {{0, 2, 0}, {0, 1, 0}}});
  ASSERT_TRUE(RunAsyncPass(async, 0, 1, 4).ok());
  std::vector<std::vector<uint64_t>> pushed;
  for (const InProcessJob::Pushed& push : job.dense_pushes()) pushed.push_back(push.batches);
  EXPECT_EQ(pushed, (std::vector<std::vector<uint64_t>>{{1}, {2}, {3}}));
}

}  // namespace
}  // namespace regatta::comm
