#include "metrics/user_auc.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace regatta::metrics {

std::optional<UserAuc::Value> UserAuc::Compute() const {
  std::vector<Sample> sorted = samples_;
  // The weight breaks ties, so that the order of arrival changes nothing, not even by rounding.
  std::sort(sorted.begin(), sorted.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.user, a.prediction, a.signed_weight) < std::tie(b.user, b.prediction, b.signed_weight);
  });
  Value value;
  double weight_sum = 0;
  for (size_t i = 0; i < sorted.size();) {
    const uint64_t user = sorted[i].user;
    double positives = 0, negatives = 0, area = 0;
    while (i < sorted.size() && sorted[i].user == user) {
      const float prediction = sorted[i].prediction;
      double positive = 0, negative = 0;
      for (; i < sorted.size() && sorted[i].user == user && sorted[i].prediction == prediction; ++i)
        (sorted[i].signed_weight > 0 ? positive : negative) += std::abs(sorted[i].signed_weight);
      area += positive * (negatives + 0.5 * negative);
      positives += positive;
      negatives += negative;
    }
    if (!(positives > 0) || !(negatives > 0)) continue;
    const double auc = area / (positives * negatives);
    value.wuauc += auc * (positives + negatives);
    value.uauc += auc;
    weight_sum += positives + negatives;
    ++value.users;
  }
  if (value.users == 0) return std::nullopt;
  value.wuauc /= weight_sum;
  value.uauc /= static_cast<double>(value.users);
  return value;
}

void UserAuc::AppendTo(std::string& out) const {
  PutBytes(out, static_cast<uint64_t>(samples_.size()));
  for (const Sample& sample : samples_) {
    PutBytes(out, sample.user);
    PutBytes(out, sample.prediction);
    PutBytes(out, sample.signed_weight);
  }
}

absl::Status UserAuc::ReadFrom(ByteReader& in) {
  samples_.clear();
  uint64_t count = 0;
  RETURN_IF_ERROR(in.Get(count));
  constexpr size_t kSampleBytes = sizeof(uint64_t) + 2 * sizeof(float);
  if (count > in.left() / kSampleBytes) return absl::DataLossError("metrics: the bytes end too early");
  samples_.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    Sample sample{};
    RETURN_IF_ERROR(in.Get(sample.user));
    RETURN_IF_ERROR(in.Get(sample.prediction));
    RETURN_IF_ERROR(in.Get(sample.signed_weight));
    // NaN would break the sort's order.
    if (std::isnan(sample.prediction) || std::isnan(sample.signed_weight))
      return absl::DataLossError("metrics: a sample of a user is NaN");
    samples_.push_back(sample);
  }
  return absl::OkStatus();
}

}  // namespace regatta::metrics
