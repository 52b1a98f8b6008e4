// Runs job(0) … job(n - 1) on a few threads and gives the first error; jobs not yet begun are then left out.
#pragma once

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::checkpoint {

template <typename Job>
absl::Status RunJobs(size_t n, const Job& job) {
  base::Mutex mu;
  absl::Status first;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (size_t i = next++; i < n && !failed; i = next++) {
      absl::Status status;
      try {
        status = job(i);
      } catch (const std::bad_alloc&) {
        status = absl::ResourceExhaustedError("there is not enough memory");
      }
      if (status.ok()) continue;
      failed = true;
      base::MutexLock lock(mu);
      if (first.ok()) first = std::move(status);
    }
  };
  const size_t threads = std::min<size_t>(n, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  return first;
}

}  // namespace regatta::checkpoint
