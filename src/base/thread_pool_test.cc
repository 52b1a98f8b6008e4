#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>
#include <vector>

namespace regatta::base {
namespace {

TEST(ThreadPool, RunsEverySubmittedTaskBeforeItEnds) {
  std::atomic<int> runs{0};
  {
    ThreadPool pool(3);
    for (int i = 0; i < 1000; ++i) pool.Submit([&] { ++runs; });
  }
  EXPECT_EQ(runs, 1000);
}

TEST(ThreadPool, WaitReturnsWhenAllHaveRun) {
  ThreadPool pool(2);
  std::atomic<int> runs{0};
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < 50; ++i) pool.Submit([&] { ++runs; });
    pool.Wait();
    EXPECT_EQ(runs, round * 50);
  }
}

TEST(ThreadPool, ParallelForCallsEachIndexOnce) {
  ThreadPool pool(4);
  for (const int64_t n : {0, 1, 2, 3, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(n));
    pool.ParallelFor(n, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
    for (const std::atomic<int>& c : calls) EXPECT_EQ(c, 1);
  }
}

TEST(ThreadPool, ParallelForMayNest) {
  ThreadPool pool(2);
  std::atomic<int> runs{0};
  pool.ParallelFor(8, [&](int64_t) { pool.ParallelFor(8, [&](int64_t) { ++runs; }); });
  EXPECT_EQ(runs, 64);
}

TEST(ThreadPool, WithoutThreadsTheCallerDoesTheWork) {
  ThreadPool pool(0);
  int runs = 0;
  pool.Submit([&] { ++runs; });
  pool.ParallelFor(5, [&](int64_t) { ++runs; });
  pool.Wait();
  EXPECT_EQ(runs, 6);
}

TEST(ThreadPool, CallersShareThePool) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) callers.emplace_back([&] { pool.ParallelFor(500, [&](int64_t i) { sum += i; }); });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 500 * 499 / 2);
}

}  // namespace
}  // namespace regatta::base
