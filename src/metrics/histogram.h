// A distribution of whole numbers (nanoseconds, bytes) in buckets that grow with the value: 16 to a power of two, so a
// value is known within 1/16 of it. Values below 16 are exact. Histograms add up.
// Thread-safety: all methods are concurrent; a reader sees each bucket at some moment, not all at the same one.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace regatta::metrics {

class Histogram {
 public:
  static constexpr int kSubBits = 4;
  static constexpr int kSub = 1 << kSubBits;
  static constexpr int kBuckets = (64 - kSubBits + 1) * kSub;

  Histogram() = default;
  Histogram(const Histogram& other) { Merge(other); }
  Histogram& operator=(const Histogram&) = delete;

  void Record(uint64_t value) {
    buckets_[BucketOf(value)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
    Raise(max_, value);
    Raise(inverted_min_, ~value);
  }
  void Merge(const Histogram& other);

  uint64_t count() const;
  uint64_t InBucket(int bucket) const { return buckets_[bucket].load(std::memory_order_relaxed); }
  uint64_t sum() const { return sum_.load(std::memory_order_relaxed); }
  uint64_t max() const { return max_.load(std::memory_order_relaxed); }
  // 0 where nothing was recorded.
  uint64_t min() const { return count() == 0 ? 0 : ~inverted_min_.load(std::memory_order_relaxed); }
  double mean() const;

  static constexpr int BucketOf(uint64_t value) {
    if (value < kSub) return static_cast<int>(value);
    const int shift = std::bit_width(value) - kSubBits - 1;
    return (shift + 1) * kSub + static_cast<int>((value >> shift) - kSub);
  }
  // The largest value of a bucket.
  static constexpr uint64_t BucketMax(int bucket) {
    if (bucket < kSub) return static_cast<uint64_t>(bucket);
    const int shift = bucket / kSub - 1;
    const uint64_t first = static_cast<uint64_t>(bucket % kSub + kSub) << shift;
    return first + ((uint64_t{1} << shift) - 1);
  }

 private:
  static void Raise(std::atomic<uint64_t>& target, uint64_t value) {
    uint64_t seen = target.load(std::memory_order_relaxed);
    while (seen < value && !target.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

  std::array<std::atomic<uint64_t>, kBuckets> buckets_{};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> max_{0};
  std::atomic<uint64_t> inverted_min_{0};  // ~min, so that 0 means nothing yet
};

}  // namespace regatta::metrics
