// All that is measured of click predictions: AUC, logloss, errors, rates, AUC by user. One object a thread; merged,
// they give the metrics of all their samples.
// Thread-safety: belongs to one thread; Merge reads the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "metrics/auc.h"
#include "metrics/user_auc.h"

namespace regatta::metrics {

struct BinaryReport {
  uint64_t samples = 0;
  double weight = 0;          // sum of the samples' weights; the means below are by weight
  std::optional<double> auc;  // nothing while a class is missing
  double logloss = 0;
  double mae = 0;
  double rmse = 0;
  double actual_ctr = 0;
  double predicted_ctr = 0;
  std::optional<double> copc;  // actual / predicted; nothing where nothing is predicted
  double bucket_error = 0;
  std::optional<UserAuc::Value> by_user;
  uint64_t invalid = 0;  // predictions that were NaN or outside [0, 1]; they count as clamped
};

class BinaryMetrics {
 public:
  // Spans are of equal length; weights and users may be empty. Labels are from 0 to 1. One in between counts as it is:
  // in an AUC the sample is of both classes, the label's share of its weight in the positive one. A negative or NaN
  // weight counts as 0.
  void Add(std::span<const float> predictions, std::span<const float> labels, std::span<const float> weights = {},
           std::span<const uint64_t> users = {});
  void Merge(const BinaryMetrics& other);
  void Clear();

  BinaryReport Report() const;
  // Only the AUC: cheaper than Report where users are kept.
  std::optional<double> AucValue() const { return auc_.Value(); }
  uint64_t samples() const { return samples_; }

  // Bit-exact: a parsed object goes on as the one that was serialised.
  std::string Serialize() const;
  static absl::StatusOr<BinaryMetrics> Parse(std::string_view bytes);

 private:
  struct Sums {
    double weight = 0;
    double clicks = 0;
    double predicted = 0;
    double absolute = 0;
    double squared = 0;
    double log_likelihood = 0;
  };

  void AddBlock(const float* predictions, const float* labels, const float* weights, const uint64_t* users, int n);

  uint64_t samples_ = 0;
  uint64_t invalid_ = 0;
  Sums sums_;
  Auc auc_;
  UserAuc users_;
};

}  // namespace regatta::metrics
