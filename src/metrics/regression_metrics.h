// What is reported of estimates of a number: mean squared and absolute errors, by the samples' weights.
// Thread-safety: belongs to one thread; Merge reads the other.
// Invariant: what is merged from parts equals what one object was given, up to rounding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace regatta::metrics {

struct RegressionReport {
  uint64_t samples = 0;
  double weight = 0;  // sum of the samples' weights; the means below are by weight, and 0 without any
  double mse = 0;
  double mae = 0;
  double rmse = 0;
};

class RegressionMetrics {
 public:
  // Finite numbers. Spans are of equal length; weights may be empty. A negative or NaN weight counts as 0.
  void Add(std::span<const float> predictions, std::span<const float> labels, std::span<const float> weights = {});
  void Merge(const RegressionMetrics& other);

  RegressionReport Report() const;
  uint64_t samples() const { return samples_; }

  // Bit-exact: a parsed object goes on as the one that was serialised.
  std::string Serialize() const;
  static absl::StatusOr<RegressionMetrics> Parse(std::string_view bytes);

 private:
  uint64_t samples_ = 0;
  double weight_ = 0;
  double absolute_ = 0;
  double squared_ = 0;
};

}  // namespace regatta::metrics
