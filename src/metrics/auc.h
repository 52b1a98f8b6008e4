// AUC from a histogram of predictions. Buckets follow the bits of a float: 2^14 for every halving of p below ½, and
// mirrored for 1 − p above it. A bucket is nowhere wider than 2^-16, nor than 6e-5 of p or 1 − p, so that the AUC is as
// good at a click rate of 0.01 % as at one of 50 %. Histograms of threads and workers add up, and then give the AUC of
// all their samples, exact but for pairs that share a bucket.
// Thread-safety: belongs to one thread; Merge reads the other.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "metrics/byte_codec.h"

namespace regatta::metrics {

class Auc {
 public:
  static constexpr int kBitsAHalving = 14;
  static constexpr int kHalvings = 39;  // from ½ down to kLeast
  static constexpr float kLeast = 0x1p-40f;
  // Below ½, above it, and one for ½ itself.
  static constexpr int kBuckets = 2 * (kHalvings << kBitsAHalving) + 1;

  Auc() = default;
  Auc(const Auc& other) { Merge(other); }
  Auc(Auc&&) = default;
  Auc& operator=(Auc other) {
    chunks_.swap(other.chunks_);
    return *this;
  }

  void Merge(const Auc& other);
  void Clear();

  // Nothing while a class is missing: the AUC is then undefined.
  std::optional<double> Value() const;

  // Impression-weighted |actual / predicted − 1| over groups of 2^-16 wide buckets: they join a group while they span
  // at most 0.01, until its relative error is below 0.05. 0 where no group gets there.
  double BucketError() const;

  void AppendTo(std::string& out) const;
  absl::Status ReadFrom(ByteReader& in);
  // What builds wrote whose buckets were 2^-16 wide everywhere: each goes to the bucket of its middle.
  absl::Status ReadEvenFrom(ByteReader& in);

  // Bucket of a prediction in [0, 1]; ascending.
  static int Bucket(float prediction) {
    const float tail = std::min(prediction, 1.0f - prediction);  // exact
    const int from_edge = TailBucket(std::max(tail, kLeast));
    return prediction < 0.5f ? from_edge : kBuckets - 1 - from_edge;
  }
  // Of min(p, 1 − p) in [kLeast, ½]: counted from the end at which p is.
  static int TailBucket(float tail) {
    constexpr int kDropped = 23 - kBitsAHalving;
    constexpr int kFirst = static_cast<int>(std::bit_cast<uint32_t>(kLeast) >> kDropped);
    return static_cast<int>(std::bit_cast<uint32_t>(tail) >> kDropped) - kFirst;
  }
  // Adds weight to the bucket's classes.
  void AddToBucket(int bucket, double negative, double positive) {
    double* const at = Chunk(bucket >> kBitsAHalving) + 2 * (bucket & (kChunk - 1));
    at[0] += negative;
    at[1] += positive;
  }

 private:
  static constexpr int kChunk = 1 << kBitsAHalving;
  static constexpr int kChunks = (kBuckets + kChunk - 1) / kChunk;

  // Where the bucket begins: the even bucket that it lies in begins there or below.
  static double Edge(int bucket);
  double* Chunk(int chunk) {
    if (chunks_[static_cast<size_t>(chunk)] == nullptr) [[unlikely]]
      chunks_[static_cast<size_t>(chunk)] = std::make_unique<double[]>(2 * kChunk);
    return chunks_[static_cast<size_t>(chunk)].get();
  }
  // Calls fn(bucket, negative, positive) for every bucket that holds something, in order.
  template <typename Fn>
  void ForEach(Fn fn) const;

  // [2b] = negatives, [2b + 1] = positives; a chunk is made when the first sample falls into it.
  std::array<std::unique_ptr<double[]>, kChunks> chunks_;
};

}  // namespace regatta::metrics
