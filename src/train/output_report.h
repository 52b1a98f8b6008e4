// What a report says of one output of a net.
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "metrics/binary_metrics.h"
#include "metrics/regression_metrics.h"

namespace regatta::train {

// Whether reports have AUCs among their main figures.
enum class ReportAuc : uint8_t { kNo, kYes };

struct OutputReport {
  std::string name;  // OutputSpec::name
  std::variant<metrics::BinaryReport, metrics::RegressionReport> metrics;

  // Null if the output is of the other kind.
  const metrics::BinaryReport* binary() const { return std::get_if<metrics::BinaryReport>(&metrics); }
  const metrics::RegressionReport* regression() const { return std::get_if<metrics::RegressionReport>(&metrics); }
};

}  // namespace regatta::train
