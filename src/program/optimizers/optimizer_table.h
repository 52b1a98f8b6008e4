// Fluid's optimizers, a row each: the operator that updates a parameter, the accumulators that it keeps beside it, and
// the arguments that a user may give.
// Thread-safety: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace regatta::program {

// A persistable variable beside every parameter: "<parameter>_<name>_<n>".
struct AccumulatorRow {
  enum class Extent : uint8_t { kAsParameter, kOne };

  std::string_view name;
  std::string_view input;   // slots of the operator
  std::string_view output;  // "" = the operator only reads it
  Extent extent = Extent::kAsParameter;
  std::string_view start = {};        // the argument that it begins with; "" = 0
  std::string_view advanced_by = {};  // the argument that it is multiplied with after the step; "" = none
};

// A keyword of the optimizer's constructor.
struct ArgumentRow {
  std::string_view keyword;
  std::string_view attribute;  // of the operator; "" = none
  double fallback = 0;         // 0 and 1 of a bool
  bool required = false;
};

struct OptimizerRow {
  std::string_view name;  // "Adam"; scripts also say AdamOptimizer
  std::string_view operator_type;
  std::span<const AccumulatorRow> accumulators;
  std::span<const ArgumentRow> arguments;
};

std::span<const OptimizerRow> AllOptimizers();
// By "Adam" or "AdamOptimizer"; INVALID_ARGUMENT lists all.
absl::StatusOr<const OptimizerRow*> OptimizerNamed(std::string_view name);

}  // namespace regatta::program
