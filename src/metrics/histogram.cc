#include "metrics/histogram.h"

#include <algorithm>
#include <cmath>

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

uint64_t Histogram::Percentile(double q) const {
  const uint64_t n = count();
  if (n == 0) return 0;
  const double share = std::clamp(q, 0.0, 1.0) * static_cast<double>(n);
  const uint64_t rank = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(share)));
  uint64_t below = 0;
  for (int i = 0; i < kBuckets; ++i) {
    below += buckets_[i].load(std::memory_order_relaxed);
    if (below >= rank) return std::clamp(BucketMax(i), min(), max());
  }
  return max();
}

}  // namespace regatta::metrics
