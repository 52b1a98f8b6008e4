#include "metrics/histogram.h"

namespace regatta::metrics {

void Histogram::Merge(const Histogram& other) {
  for (int i = 0; i < kBuckets; ++i) {
    const uint64_t n = other.buckets_[i].load(std::memory_order_relaxed);
    if (n != 0) buckets_[i].fetch_add(n, std::memory_order_relaxed);
  }
  sum_.fetch_add(other.sum(), std::memory_order_relaxed);
  Raise(max_, other.max());
  Raise(inverted_min_, other.inverted_min_.load(std::memory_order_relaxed));
}

uint64_t Histogram::count() const {
  uint64_t n = 0;
  for (const std::atomic<uint64_t>& bucket : buckets_) n += bucket.load(std::memory_order_relaxed);
  return n;
}

double Histogram::mean() const {
  const uint64_t n = count();
  return n == 0 ? 0 : static_cast<double>(sum()) / static_cast<double>(n);
}

}  // namespace regatta::metrics
