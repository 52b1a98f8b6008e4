#include "wire/call_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <list>
#include <set>

namespace regatta::wire {
namespace {

TEST(CallThreads, ThereAreSoManyAndSoManyCallsWait) {
  std::latch begun(2), over(1);
  std::atomic<int> ran{0};
  CallThreads threads(2, 3);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(threads.Run([&] {
      begun.count_down();
      over.wait();
      ++ran;
    }));
  begun.wait();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(threads.Run([&] { ++ran; }));
  EXPECT_FALSE(threads.Run([&] { ++ran; }));
  over.count_down();
  threads.Stop();
  EXPECT_EQ(ran, 5);
  EXPECT_FALSE(threads.Run([] {})) << "after Stop";
}

TEST(CallThreads, AThreadIsUsedAgain) {
  base::Mutex mu;
  std::set<std::thread::id> used;
  std::list<std::latch> calls;
  CallThreads threads(64, 0);
  for (int i = 0; i < 200; ++i) {
    std::latch& done = calls.emplace_back(1);
    ASSERT_TRUE(threads.Run([&] {
      {
        base::MutexLock lock(mu);
        used.insert(std::this_thread::get_id());
      }
      done.count_down();
    }));
    done.wait();
  }
  EXPECT_LT(used.size(), 64u);
}

TEST(CallThreads, WithoutAQueueACallHasAThreadOrIsRefused) {
  std::latch begun(1), over(1);
  CallThreads threads(1, 0);
  ASSERT_TRUE(threads.Run([&] {
    begun.count_down();
    over.wait();
  }));
  begun.wait();
  EXPECT_FALSE(threads.Run([] {}));
  over.count_down();
}

}  // namespace
}  // namespace regatta::wire
