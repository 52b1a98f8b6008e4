#include "comm/half_async.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/testing/in_process_job.h"
#include "comm/testing/small_step.h"

namespace regatta::comm {
namespace {

SmallStep HalfStepOf(uint64_t batch) {
  return {.grads = {{1, -1}, {100 + batch, -static_cast<float>(batch + 1)}},
          .dense = {-1, -static_cast<float>(batch)},
          .samples = 2};
}

absl::Status RunHalfPass(HalfAsync& half, int threads, uint64_t batches, uint64_t first = 0) {
  RETURN_IF_ERROR(half.BeginPass(SmallPass(0, first)));
  RETURN_IF_ERROR(InThreads(threads, [&](int thread) -> absl::Status {
    for (uint64_t batch = first + static_cast<uint64_t>(thread); batch < batches;
         batch += static_cast<uint64_t>(threads))
      RETURN_IF_ERROR(RunStep(half, HalfStepOf(batch), batch, thread));
    return absl::OkStatus();
  }));
  return half.EndPass();
}

TEST(HalfAsync, ConsecutiveBatchesBecomeOnePushWithTheirSum) {
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables());
    HalfAsync half(job.client(0), threads, 4, 2);
    EXPECT_EQ(half.traits().batches_a_push, 4);
    ASSERT_TRUE(RunHalfPass(half, threads, 10).ok());
    const auto pushes = job.pushes();
    ASSERT_EQ(pushes.size(), 3u);
    const std::vector<std::vector<uint64_t>> groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(pushes[i].step, i);
      EXPECT_EQ(pushes[i].batches, groups[i]);
      EXPECT_EQ(pushes[i].samples, 2 * groups[i].size());
    }
    // A group moves a row by its sum divided by its samples: two groups of 8 samples, one of 4.
    const std::map<base::Key, float> rows = job.rows();
    EXPECT_EQ(rows.at(1), 1.5f);
    for (uint64_t batch = 0; batch < 10; ++batch)
      EXPECT_EQ(rows.at(100 + batch), static_cast<float>(batch + 1) / (batch < 8 ? 8.0f : 4.0f)) << batch;
    // Groups that are ready while an exchange is under way are one dense push. Each push moves the first parameter by
    // its batches divided by its samples, two a batch.
    EXPECT_EQ(job.dense()[0], 0.5f * static_cast<float>(job.dense_pushes().size()));
    std::map<uint64_t, int> seen;
    for (const InProcessJob::Pushed& push : job.dense_pushes()) {
      float batches = 0;
      for (const uint64_t batch : push.batches) {
        ++seen[batch];
        batches += static_cast<float>(batch);
      }
      EXPECT_EQ(push.dense, (std::vector<float>{-static_cast<float>(push.batches.size()), -batches}));
    }
    EXPECT_EQ(seen.size(), 10u);
    for (const auto& [batch, times] : seen) EXPECT_EQ(times, 1) << batch;
  }
}

TEST(HalfAsync, ABatchPullsWhenAllGroupsBeforeItsOwnArePushed) {
  InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables());
  HalfAsync half(job.client(0), 2, 2, 1);
  ASSERT_TRUE(half.BeginPass(SmallPass()).ok());
  ASSERT_TRUE(RunStep(half, HalfStepOf(0), 0, 0).ok());
  std::atomic<bool> pulled{false};
  std::map<base::Key, float> rows;
  std::thread next([&] {
    EXPECT_TRUE(RunStep(half, HalfStepOf(2), 2, 1, 0, &rows).ok());
    pulled = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(pulled);
  ASSERT_TRUE(RunStep(half, HalfStepOf(1), 1, 0).ok());
  next.join();
  EXPECT_EQ(rows.at(1), 0.5f);  // two batches of two samples
  ASSERT_TRUE(half.EndPass().ok());
}

TEST(HalfAsync, AbortEndsTheWaitOfTheOtherThreads) {
  InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables());
  HalfAsync half(job.client(0), 2, 2, 1);
  ASSERT_TRUE(half.BeginPass(SmallPass()).ok());
  absl::Status waited;
  std::thread other([&] { waited = RunStep(half, HalfStepOf(2), 2, 1); });
  half.Abort(absl::DataLossError("batch 1 is broken"));
  other.join();
  EXPECT_EQ(waited.message(), "batch 1 is broken");
}

TEST(HalfAsync, AtMostAWindowOfGroupsIsNotAcknowledged) {
  InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables(0));
  HalfAsync half(job.client(0), 1, 2, 2);
  ASSERT_TRUE(half.BeginPass(SmallPass()).ok());
  job.SetHeld(true);
  const auto commit = [&](uint64_t batch) { return half.Commit(StepViews({{{1, -1}}, {}, 1}, batch, 0).grads()); };
  for (uint64_t batch = 0; batch < 5; ++batch) ASSERT_TRUE(commit(batch).ok());
  EXPECT_EQ(job.waiting(), 2u);
  std::atomic<bool> committed{false};
  std::thread last([&] {
    EXPECT_TRUE(commit(5).ok());  // completes the third group
    committed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(committed);
  job.SetHeld(false);
  last.join();
  ASSERT_TRUE(half.Flush().ok());
  EXPECT_EQ(job.rows().at(1), 3);
}

TEST(HalfAsync, AWorkerThatComesBackNumbersItsGroupsBehindThoseThatAreThere) {
  InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables());
  HalfAsync half(job.client(0), 1, 2, 1, Resumed{.pass = 0, .step = 3, .dense = {{0, 6, 0}}});
  ASSERT_TRUE(RunHalfPass(half, 1, 10, 6).ok());
  std::vector<uint64_t> steps;
  for (const InProcessJob::Pushed& push : job.pushes()) steps.push_back(push.step);
  EXPECT_EQ(steps, (std::vector<uint64_t>{3, 4}));
}

}  // namespace
}  // namespace regatta::comm
