// A fixed number of threads that run what is submitted.
// Thread-safety: all methods are concurrent; the destructor runs what is queued and joins.
// Invariant: tasks do not throw; a failure is a Status that the task keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace regatta::base {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

  void Submit(std::function<void()> task);
  // Calls fn(0) … fn(n - 1), each once, on the pool and on the calling thread; returns when all are done. May be called
  // from a task: the caller works too, so that it never waits for a thread that waits for it.
  void ParallelFor(int64_t n, const std::function<void(int64_t)>& fn);
  // Returns when everything submitted before has run. Not from a task.
  void Wait();

 private:
  void Work();

  std::vector<std::thread> threads_;  // constant after construction
  Mutex mu_;
  CondVar wake_;
  CondVar idle_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::base
