// How fast a count grows: its increase over the last ten seconds, a second.
// Thread-safety: all methods are concurrent.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "base/mutex.h"

namespace regatta::metrics {

class Rate {
 public:
  using Clock = std::chrono::steady_clock;

  // What the count is now. Call it now and then, several times in ten seconds.
  void Update(uint64_t count, Clock::time_point now = Clock::now()) {
    base::MutexLock lock(mu_);
    if (!seen_.empty() && now - seen_.back().when < kStep) return;
    seen_.push_back({now, count});
    while (seen_.size() > 2 && now - seen_[1].when >= kSpan) seen_.pop_front();
  }
  double PerSecond() const {
    base::MutexLock lock(mu_);
    if (seen_.size() < 2) return 0;
    const double seconds = std::chrono::duration<double>(seen_.back().when - seen_.front().when).count();
    return static_cast<double>(seen_.back().count - seen_.front().count) / seconds;
  }

 private:
  static constexpr std::chrono::milliseconds kStep{500};
  static constexpr std::chrono::seconds kSpan{10};
  struct Seen {
    Clock::time_point when;
    uint64_t count;
  };
  mutable base::Mutex mu_;
  std::deque<Seen> seen_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::metrics
