// The lock of one shard: four bytes beside the shard's index, taken once a batch for microseconds. It spins, then
// yields, then sleeps, so a holder that lost its core is not starved. A walk holds the locks of many shards at once,
// always in ascending order (more than TSan's 64 instrumented mutexes a thread, which is one reason for a lock of our
// own; the other is that a cheap unlock matters where a batch brings one key a shard).
// Thread-safety: it is a lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"

namespace regatta::table {

class ABSL_LOCKABLE ShardLock {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (!held_.exchange(true, std::memory_order_acquire)) [[likely]]
      return;
    Wait();
  }
  void unlock() ABSL_UNLOCK_FUNCTION() { held_.store(false, std::memory_order_release); }

 private:
  [[gnu::noinline]] void Wait() {
    for (int turn = 0;; ++turn) {
      if (!held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire)) return;
      if (turn < kSpins) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else if (turn < kSpins + kYields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  static constexpr int kSpins = 100;
  static constexpr int kYields = 100;
  std::atomic<bool> held_{false};
};

}  // namespace regatta::table
