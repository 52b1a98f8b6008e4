#include "metrics/auc.h"

#include <algorithm>
#include <cmath>

namespace regatta::metrics {
namespace {

constexpr double kMaxSpan = 0.01;
constexpr double kRelativeErrorBound = 0.05;

}  // namespace

void Auc::Add(std::span<const float> predictions, std::span<const float> labels, std::span<const float> weights) {
  for (size_t i = 0; i < predictions.size(); ++i) {
    float p = predictions[i];
    p = p >= 0 ? std::min(p, 1.0f) : 0.0f;
    AddToBucket(Bucket(p), labels[i] > 0.5f, weights.empty() ? 1.0 : weights[i]);
  }
}

void Auc::Merge(const Auc& other) {
  for (size_t i = 0; i < weights_.size(); ++i) weights_[i] += other.weights_[i];
}

void Auc::Clear() { std::fill(weights_.begin(), weights_.end(), 0.0); }

double Auc::positives() const {
  double sum = 0;
  for (int b = 0; b < kBuckets; ++b) sum += weights_[2 * b + 1];
  return sum;
}

double Auc::negatives() const {
  double sum = 0;
  for (int b = 0; b < kBuckets; ++b) sum += weights_[2 * b];
  return sum;
}

std::optional<double> Auc::Value() const {
  double negatives_below = 0, positives = 0, area = 0;
  for (int b = 0; b < kBuckets; ++b) {
    const double negative = weights_[2 * b], positive = weights_[2 * b + 1];
    area += positive * (negatives_below + 0.5 * negative);
    negatives_below += negative;
    positives += positive;
  }
  if (!(negatives_below > 0) || !(positives > 0)) return std::nullopt;
  return area / (negatives_below * positives);
}

double Auc::BucketError() const {
  double start = -1, shows = 0, predicted = 0, clicks = 0;  // of the group
  double error_sum = 0, error_shows = 0;
  for (int b = 0; b < kBuckets; ++b) {
    const double show = weights_[2 * b] + weights_[2 * b + 1];
    const double ctr = static_cast<double>(b) / kBuckets;
    if (start < 0 || ctr - start > kMaxSpan) {
      start = ctr;
      shows = predicted = clicks = 0;
    }
    if (show == 0) continue;
    shows += show;
    predicted += ctr * show;
    clicks += weights_[2 * b + 1];
    const double mean = predicted / shows;
    if (!(mean > 0) || !(std::sqrt((1 - mean) / (mean * shows)) < kRelativeErrorBound)) continue;
    error_sum += std::abs(clicks / shows / mean - 1) * shows;
    error_shows += shows;
    start = -1;
  }
  return error_shows > 0 ? error_sum / error_shows : 0;
}

void Auc::AppendTo(std::string& out) const {
  uint32_t used = 0;
  for (int b = 0; b < kBuckets; ++b) used += weights_[2 * b] != 0 || weights_[2 * b + 1] != 0;
  PutBytes(out, used);
  for (int b = 0; b < kBuckets; ++b) {
    if (weights_[2 * b] == 0 && weights_[2 * b + 1] == 0) continue;
    PutBytes(out, static_cast<uint32_t>(b));
    PutBytes(out, weights_[2 * b]);
    PutBytes(out, weights_[2 * b + 1]);
  }
}

absl::Status Auc::ReadFrom(ByteReader& in) {
  Clear();
  uint32_t used = 0;
  RETURN_IF_ERROR(in.Get(used));
  for (uint32_t i = 0; i < used; ++i) {
    uint32_t bucket = 0;
    double negative = 0, positive = 0;
    RETURN_IF_ERROR(in.Get(bucket));
    RETURN_IF_ERROR(in.Get(negative));
    RETURN_IF_ERROR(in.Get(positive));
    if (bucket >= kBuckets) return absl::DataLossError(absl::StrCat("metrics: bucket ", bucket, " of an AUC"));
    weights_[2 * bucket] = negative;
    weights_[2 * bucket + 1] = positive;
  }
  return absl::OkStatus();
}

}  // namespace regatta::metrics
