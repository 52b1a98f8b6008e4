#include "train/output_meter.h"

#include <span>
#include <type_traits>
#include <utility>

namespace regatta::train {

using metrics::BinaryMetrics;
using metrics::RegressionMetrics;

OutputMeter::OutputMeter(std::string name, int label, Metric metric) : name_(std::move(name)), label_(label) {
  if (metric == Metric::kRegression) metrics_ = RegressionMetrics();
}

void OutputMeter::Add(const base::TensorView& predictions, const data::Batch& batch) {
  std::span<const float> labels = batch.labels;
  if (batch.label_dim > 1) {
    const auto samples = static_cast<size_t>(batch.size), dim = static_cast<size_t>(batch.label_dim);
    column_.resize(samples);
    for (size_t i = 0; i < samples; ++i) column_[i] = batch.labels[i * dim + static_cast<size_t>(label_)];
    labels = column_;
  }
  if (BinaryMetrics* const binary = std::get_if<BinaryMetrics>(&metrics_)) {
    binary->Add(predictions.floats(), labels, batch.weights, batch.users);
  } else {
    std::get<RegressionMetrics>(metrics_).Add(predictions.floats(), labels, batch.weights);
  }
}

void OutputMeter::Merge(const OutputMeter& other) {
  std::visit([&](auto& mine) { mine.Merge(std::get<std::remove_reference_t<decltype(mine)>>(other.metrics_)); },
             metrics_);
}

uint64_t OutputMeter::samples() const {
  return std::visit([](const auto& counted) { return counted.samples(); }, metrics_);
}

OutputReport OutputMeter::Report() const {
  OutputReport report{.name = name_, .metrics = {}};
  std::visit([&](const auto& counted) { report.metrics = counted.Report(); }, metrics_);
  return report;
}

OutputReport OutputMeter::BriefReport() const {
  const BinaryMetrics* const binary = std::get_if<BinaryMetrics>(&metrics_);
  if (binary == nullptr) return Report();
  metrics::BinaryReport brief;
  brief.samples = binary->samples();
  brief.auc = binary->AucValue();
  return {.name = name_, .metrics = std::move(brief)};
}

std::string OutputMeter::Serialize() const {
  return std::visit([](const auto& counted) { return counted.Serialize(); }, metrics_);
}

absl::Status OutputMeter::Restore(std::string_view bytes) {
  return std::visit(
      [&](auto& counted) -> absl::Status {
        ASSIGN_OR_RETURN(counted, std::remove_reference_t<decltype(counted)>::Parse(bytes));
        return absl::OkStatus();
      },
      metrics_);
}

}  // namespace regatta::train
