#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace regatta::base {
namespace {

// Shared by the caller and the helpers of one ParallelFor; a helper may start after the caller has left, and then
// finds no index to take.
struct Loop {
  Loop(int64_t count, const std::function<void(int64_t)>& body) : n(count), fn(&body) {}

  // Takes indices until there are none.
  void Run() {
    for (int64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) {
      (*fn)(i);
      MutexLock lock(mu);
      if (++done == n) all_done.NotifyAll();
    }
  }
  void Wait() {
    MutexLock lock(mu);
    while (done < n) all_done.Wait(mu);
  }

  const int64_t n;
  const std::function<void(int64_t)>* const fn;  // alive while an index is untaken or running
  std::atomic<int64_t> next{0};
  Mutex mu;
  CondVar all_done;
  int64_t done ABSL_GUARDED_BY(mu) = 0;
};

}  // namespace

ThreadPool::ThreadPool(int threads) {
  threads_.reserve(static_cast<size_t>(std::max(threads, 0)));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Submit(std::function<void()> task) {
  if (threads_.empty()) return task();
  {
    MutexLock lock(mu_);
    queue_.push_back(std::move(task));
  }
  wake_.NotifyOne();
}

void ThreadPool::ParallelFor(int64_t n, const std::function<void(int64_t)>& fn) {
  if (n <= 0) return;
  auto loop = std::make_shared<Loop>(n, fn);
  const int64_t helpers = std::min<int64_t>(size(), n - 1);
  for (int64_t i = 0; i < helpers; ++i) Submit([loop] { loop->Run(); });
  loop->Run();
  loop->Wait();
}

void ThreadPool::Wait() {
  MutexLock lock(mu_);
  while (!queue_.empty() || running_ > 0) idle_.Wait(mu_);
}

void ThreadPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(mu_);
      while (queue_.empty() && !stopping_) wake_.Wait(mu_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
      ++running_;
    }
    task();
    task = nullptr;  // what the task holds is gone before Wait returns
    MutexLock lock(mu_);
    if (--running_ == 0 && queue_.empty()) idle_.NotifyAll();
  }
}

}  // namespace regatta::base
