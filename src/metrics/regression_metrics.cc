#include "metrics/regression_metrics.h"

#include <cmath>

#include "metrics/byte_codec.h"

namespace regatta::metrics {
namespace {

constexpr uint32_t kRegressionMagic = 0x314D5252;  // "RRM1"

}  // namespace

void RegressionMetrics::Add(std::span<const float> predictions, std::span<const float> labels,
                            std::span<const float> weights) {
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double error = double{predictions[i]} - double{labels[i]};
    const double weight = weights.empty() ? 1 : weights[i] > 0 ? double{weights[i]} : 0;
    weight_ += weight;
    absolute_ += weight * std::abs(error);
    squared_ += weight * error * error;
  }
  samples_ += predictions.size();
}

void RegressionMetrics::Merge(const RegressionMetrics& other) {
  samples_ += other.samples_;
  weight_ += other.weight_;
  absolute_ += other.absolute_;
  squared_ += other.squared_;
}

RegressionReport RegressionMetrics::Report() const {
  RegressionReport report{.samples = samples_, .weight = weight_};
  if (!(weight_ > 0)) return report;
  report.mse = squared_ / weight_;
  report.mae = absolute_ / weight_;
  report.rmse = std::sqrt(report.mse);
  return report;
}

std::string RegressionMetrics::Serialize() const {
  std::string out;
  PutBytes(out, kRegressionMagic);
  PutBytes(out, samples_);
  PutBytes(out, weight_);
  PutBytes(out, absolute_);
  PutBytes(out, squared_);
  return out;
}

absl::StatusOr<RegressionMetrics> RegressionMetrics::Parse(std::string_view bytes) {
  ByteReader in(bytes);
  RegressionMetrics metrics;
  uint32_t magic = 0;
  RETURN_IF_ERROR(in.Get(magic));
  if (magic != kRegressionMagic) return absl::DataLossError("metrics: not the bytes of metrics of a regression");
  RETURN_IF_ERROR(in.Get(metrics.samples_));
  RETURN_IF_ERROR(in.Get(metrics.weight_));
  RETURN_IF_ERROR(in.Get(metrics.absolute_));
  RETURN_IF_ERROR(in.Get(metrics.squared_));
  if (in.left() != 0) return absl::DataLossError(absl::StrCat("metrics: ", in.left(), " bytes too many"));
  return metrics;
}

}  // namespace regatta::metrics
