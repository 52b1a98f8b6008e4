// AUC from a histogram of predictions: 2^16 buckets over [0, 1], one weight for each class. Histograms of threads and
// workers add up, and then give the AUC of all their samples, exact but for pairs that share a bucket.
// Thread-safety: belongs to one thread; Merge reads the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "metrics/byte_codec.h"

namespace regatta::metrics {

class Auc {
 public:
  static constexpr int kBuckets = 1 << 16;

  Auc() : weights_(2 * kBuckets, 0.0) {}

  // A prediction below 0 (or NaN) counts as 0, one above 1 as 1. A label above 0.5 is positive. No weights = all 1.
  void Add(std::span<const float> predictions, std::span<const float> labels, std::span<const float> weights = {});
  void Merge(const Auc& other);
  void Clear();

  // Nothing while a class is missing: the AUC is then undefined.
  std::optional<double> Value() const;
  double positives() const;
  double negatives() const;

  // Impression-weighted |actual / predicted − 1| over groups of buckets: buckets join a group while they span at most
  // 0.01, until its relative error is below 0.05. 0 where no group gets there.
  double BucketError() const;

  void AppendTo(std::string& out) const;
  absl::Status ReadFrom(ByteReader& in);

  // Bucket of a prediction in [0, 1].
  static int Bucket(float prediction) {
    const int bucket = static_cast<int>(prediction * kBuckets);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  // For callers that have the bucket: adds `weight` to its class.
  void AddToBucket(int bucket, bool positive, double weight) { weights_[2 * bucket + (positive ? 1 : 0)] += weight; }
  friend bool operator==(const Auc&, const Auc&) = default;

 private:
  std::vector<double> weights_;  // [2b] = negatives, [2b + 1] = positives of bucket b
};

}  // namespace regatta::metrics
