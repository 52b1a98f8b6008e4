#include "metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace regatta::metrics {
namespace {

constexpr double kMaxSpan = 0.01;
constexpr double kRelativeErrorBound = 0.05;
constexpr int kEvenBuckets = 1 << 16;

// A weight as a varint where it is a count, which most are: 2 · count. Else 1 and its bits.
void PutWeight(std::string& out, double weight) {
  const bool is_count = weight >= 0 && weight < 0x1p53 && weight == std::floor(weight) && !std::signbit(weight);
  PutVarint(out, is_count ? static_cast<uint64_t>(weight) << 1 : 1);
  if (!is_count) PutBytes(out, weight);
}

absl::Status GetWeight(ByteReader& in, double& weight) {
  uint64_t head = 0;
  RETURN_IF_ERROR(in.GetVarint(head));
  if (head == 1) return in.Get(weight);
  if (head % 2 != 0) return absl::DataLossError("metrics: a weight of an AUC is neither a count nor a number");
  weight = static_cast<double>(head >> 1);
  return absl::OkStatus();
}

absl::Status NoSuchBucket(uint64_t bucket) {
  return absl::DataLossError(absl::StrCat("metrics: bucket ", bucket, " of an AUC"));
}

}  // namespace

template <typename Fn>
void Auc::ForEach(Fn fn) const {
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const double* const weights = chunks_[static_cast<size_t>(chunk)].get();
    if (weights == nullptr) continue;
    for (int i = 0; i < kChunk; ++i)
      if (weights[2 * i] != 0 || weights[2 * i + 1] != 0) fn(chunk * kChunk + i, weights[2 * i], weights[2 * i + 1]);
  }
}

void Auc::Merge(const Auc& other) {
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const double* const from = other.chunks_[static_cast<size_t>(chunk)].get();
    if (from == nullptr) continue;
    double* const to = Chunk(chunk);
    for (int i = 0; i < 2 * kChunk; ++i) to[i] += from[i];
  }
}

void Auc::Clear() {
  for (std::unique_ptr<double[]>& chunk : chunks_) chunk.reset();
}

std::optional<double> Auc::Value() const {
  double negatives_below = 0, positives = 0, area = 0;
  ForEach([&](int, double negative, double positive) {
    area += positive * (negatives_below + 0.5 * negative);
    negatives_below += negative;
    positives += positive;
  });
  if (!(negatives_below > 0) || !(positives > 0)) return std::nullopt;
  return area / (negatives_below * positives);
}

double Auc::Edge(int bucket) {
  constexpr uint32_t kFirst = std::bit_cast<uint32_t>(kLeast) >> (23 - kBitsAHalving);
  const auto tail = [](int from_edge) {
    return double{std::bit_cast<float>((kFirst + static_cast<uint32_t>(from_edge)) << (23 - kBitsAHalving))};
  };
  if (bucket == 0) return 0;  // holds all below kLeast too
  return 2 * bucket < kBuckets ? tail(bucket) : 1 - tail(kBuckets - bucket);
}

double Auc::BucketError() const {
  // A bucket lies within one of the even ones.
  std::vector<double> shows_of(kEvenBuckets), clicks_of(kEvenBuckets);
  ForEach([&](int bucket, double negative, double positive) {
    const auto even = static_cast<size_t>(std::min(Edge(bucket) * kEvenBuckets, kEvenBuckets - 1.0));
    shows_of[even] += negative + positive;
    clicks_of[even] += positive;
  });
  double start = -1, shows = 0, predicted = 0, clicks = 0;  // of the group
  double error_sum = 0, error_shows = 0;
  for (size_t b = 0; b < kEvenBuckets; ++b) {
    const double ctr = static_cast<double>(b) / kEvenBuckets;
    if (start < 0 || ctr - start > kMaxSpan) {
      start = ctr;
      shows = predicted = clicks = 0;
    }
    if (shows_of[b] == 0) continue;
    shows += shows_of[b];
    predicted += ctr * shows_of[b];
    clicks += clicks_of[b];
    const double mean = predicted / shows;
    if (!(mean > 0) || !(std::sqrt((1 - mean) / (mean * shows)) < kRelativeErrorBound)) continue;
    error_sum += std::abs(clicks / shows / mean - 1) * shows;
    error_shows += shows;
    start = -1;
  }
  return error_shows > 0 ? error_sum / error_shows : 0;
}

// The number of used buckets, and for each its distance from the one before and its two weights.
void Auc::AppendTo(std::string& out) const {
  uint64_t used = 0;
  ForEach([&](int, double, double) { ++used; });
  PutVarint(out, used);
  int next = 0;
  ForEach([&](int bucket, double negative, double positive) {
    PutVarint(out, static_cast<uint64_t>(bucket - next));
    PutWeight(out, negative);
    PutWeight(out, positive);
    next = bucket + 1;
  });
}

absl::Status Auc::ReadFrom(ByteReader& in) {
  Clear();
  uint64_t used = 0, next = 0;
  RETURN_IF_ERROR(in.GetVarint(used));
  for (uint64_t i = 0; i < used; ++i) {
    uint64_t distance = 0;
    double negative = 0, positive = 0;
    RETURN_IF_ERROR(in.GetVarint(distance));
    RETURN_IF_ERROR(GetWeight(in, negative));
    RETURN_IF_ERROR(GetWeight(in, positive));
    if (distance >= kBuckets || next + distance >= kBuckets) return NoSuchBucket(next + distance);
    next += distance;
    AddToBucket(static_cast<int>(next++), negative, positive);
  }
  return absl::OkStatus();
}

absl::Status Auc::ReadEvenFrom(ByteReader& in) {
  Clear();
  uint32_t used = 0;
  RETURN_IF_ERROR(in.Get(used));
  for (uint32_t i = 0; i < used; ++i) {
    uint32_t bucket = 0;
    double negative = 0, positive = 0;
    RETURN_IF_ERROR(in.Get(bucket));
    RETURN_IF_ERROR(in.Get(negative));
    RETURN_IF_ERROR(in.Get(positive));
    if (bucket >= kEvenBuckets) return NoSuchBucket(bucket);
    AddToBucket(Bucket((static_cast<float>(bucket) + 0.5f) / kEvenBuckets), negative, positive);
  }
  return absl::OkStatus();
}

}  // namespace regatta::metrics
