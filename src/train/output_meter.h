// The metrics of one output of a net over a pass.
// Thread-safety: belongs to one thread; Merge reads the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "data/batch.h"
#include "metrics/binary_metrics.h"
#include "metrics/regression_metrics.h"
#include "train/net_spec.h"
#include "train/output_report.h"

namespace regatta::train {

class OutputMeter {
 public:
  OutputMeter(const NetSpec& spec, const OutputSpec& output)
      : OutputMeter(output.name, spec.LabelOf(output), output.metric) {}

  const std::string& name() const { return name_; }
  Metric metric() const { return metrics_.index() == 0 ? Metric::kBinary : Metric::kRegression; }

  // The predictions of a batch with labels.
  void Add(const base::TensorView& predictions, const data::Batch& batch);
  // The other is of the same output.
  void Merge(const OutputMeter& other);
  // The same output with nothing counted.
  OutputMeter Empty() const { return {name_, label_, metric()}; }

  uint64_t samples() const;
  OutputReport Report() const;
  // Of a binary output AUC and samples alone: cheaper if users are kept.
  OutputReport BriefReport() const;

  // Bit-exact. Restore replaces what was counted; bytes of the other kind of metrics are DATA_LOSS.
  std::string Serialize() const;
  absl::Status Restore(std::string_view bytes);

 private:
  OutputMeter(std::string name, int label, Metric metric);

  std::string name_;
  int label_ = 0;  // the column of the batch's labels
  std::variant<metrics::BinaryMetrics, metrics::RegressionMetrics> metrics_;
  std::vector<float> column_;  // the labels of a batch with several
};

}  // namespace regatta::train
