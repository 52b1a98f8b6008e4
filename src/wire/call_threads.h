// Threads that serve calls: made when a call needs one, used again, ended after some idle seconds.
// Thread-safety: Run is concurrent; Stop is called once, by the owner.
// Invariant: there are never more than `most` threads, and never more than `queued` calls that wait for one.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <thread>

#include "base/mutex.h"

namespace regatta::wire {

class CallThreads {
 public:
  CallThreads(size_t most, size_t queued) : most_(most), queued_(queued) {}
  ~CallThreads() { Stop(); }
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  // False, and nothing happens, if every thread is taken and the queue is full, or after Stop.
  bool Run(std::function<void()> call);
  // Returns when everything that was taken has run.
  void Stop();

 private:
  using Threads = std::list<std::thread>;
  void Work(Threads::iterator self);

  const size_t most_;
  const size_t queued_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
  Threads threads_ ABSL_GUARDED_BY(mu_);
  Threads ended_ ABSL_GUARDED_BY(mu_);  // to be joined
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::wire
