// Whether gradients are numbers: what table::NanPolicy is applied to.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/step.h"

namespace regatta::base {

bool AllFinite(std::span<const float> values);

// Bit i: row i has no NaN and no Inf. At most 64 rows.
uint64_t FiniteRows(const RowsView<const float>& grads, int count);

// Of `count` rows, those with NaN or Inf.
uint64_t CountNonFiniteRows(const RowsView<const float>& grads, size_t count);

// The index of the first value that is NaN or Inf, or values.size().
size_t FirstNonFinite(std::span<const float> values);

// Copies, with 0 in the place of every NaN and Inf.
void CopyFinite(std::span<const float> values, float* out);

}  // namespace regatta::base
