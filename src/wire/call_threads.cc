#include "wire/call_threads.h"

#include <system_error>
#include <utility>

namespace regatta::wire {
namespace {

constexpr std::chrono::seconds kIdle(10);

}  // namespace

bool CallThreads::Run(std::function<void()> call) {
  Threads ended;
  {
    base::MutexLock lock(mu_);
    if (stopping_) return false;
    const bool more = idle_ <= queue_.size() && threads_.size() < most_;
    if (!more && queue_.size() >= idle_ + queued_) return false;
    queue_.push_back(std::move(call));
    ended.swap(ended_);
    if (more) {
      threads_.emplace_back();
      try {
        threads_.back() = std::thread([this, self = std::prev(threads_.end())] { Work(self); });
      } catch (const std::system_error&) {  // the system has no more of them
        threads_.pop_back();
        if (threads_.empty()) {
          queue_.pop_back();
          return false;
        }
      }
    } else {
      changed_.NotifyOne();
    }
  }
  for (std::thread& thread : ended) thread.join();
  return true;
}

void CallThreads::Work(Threads::iterator self) {
  base::MutexLock lock(mu_);
  while (true) {
    ++idle_;
    bool rested = false;
    while (queue_.empty() && !stopping_ && !rested) rested = !changed_.WaitFor(mu_, kIdle);
    --idle_;
    if (queue_.empty()) break;
    const std::function<void()> call = std::move(queue_.front());
    queue_.pop_front();
    mu_.unlock();
    call();
    mu_.lock();
  }
  ended_.splice(ended_.end(), threads_, self);
  changed_.NotifyAll();
}

void CallThreads::Stop() {
  Threads ended;
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
    while (!threads_.empty()) changed_.Wait(mu_);
    ended.swap(ended_);
  }
  for (std::thread& thread : ended) thread.join();
}

}  // namespace regatta::wire
