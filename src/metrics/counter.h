// A count that any thread adds to.
// Thread-safety: all methods are concurrent.
#pragma once

#include <atomic>
#include <cstdint>

namespace regatta::metrics {

// A cache line of its own, so that counters beside each other do not slow each other down.
class alignas(64) Counter {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace regatta::metrics
