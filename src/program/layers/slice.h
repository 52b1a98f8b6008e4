// x[1:3, -1], the language's brackets on a variable. Results are named "<x>_slice_<n>".
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <optional>
#include <vector>

#include "program/program_builder.h"

namespace regatta::program::layers {

// What stands for one axis: a place (the axis goes away), or a range from start to before stop.
struct SliceItem {
  std::optional<int64_t> place = std::nullopt;
  std::optional<int64_t> start = std::nullopt;
  std::optional<int64_t> stop = std::nullopt;
  int64_t step = 1;
};

// An item for each of the first axes; the axes behind them stay whole.
absl::StatusOr<Variable*> Slice(ProgramBuilder& builder, Variable* x, const std::vector<SliceItem>& items);

}  // namespace regatta::program::layers
