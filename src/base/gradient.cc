#include "base/gradient.h"

#include <bit>
#include <cmath>

#include "base/multiversion.h"

namespace regatta::base {
namespace {

// The largest magnitude as bits: NaN and Inf are those from 0x7f800000 on.
REGATTA_MULTIVERSION int32_t LargestBits(const float* values, size_t n) {
  int32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(values[i]) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

constexpr int32_t kInfinityBits = 0x7f800000;

}  // namespace

bool AllFinite(std::span<const float> values) { return LargestBits(values.data(), values.size()) < kInfinityBits; }

uint64_t FiniteRows(const RowsView<const float>& grads, int count) {
  const uint64_t all = count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  const size_t width = static_cast<size_t>(grads.width);
  if (grads.stride == grads.width && AllFinite({grads.data, width * static_cast<size_t>(count)})) return all;
  uint64_t finite = 0;
  for (int i = 0; i < count; ++i) finite |= static_cast<uint64_t>(AllFinite({grads.row(i), width})) << i;
  return finite;
}

uint64_t CountNonFiniteRows(const RowsView<const float>& grads, size_t count) {
  const size_t width = static_cast<size_t>(grads.width);
  if (grads.stride == grads.width && AllFinite({grads.data, width * count})) return 0;
  uint64_t bad = 0;
  for (size_t i = 0; i < count; ++i) bad += AllFinite({grads.row(i), width}) ? 0 : 1;
  return bad;
}

size_t FirstNonFinite(std::span<const float> values) {
  size_t i = 0;
  while (i < values.size() && std::isfinite(values[i])) ++i;
  return i;
}

void CopyFinite(std::span<const float> values, float* out) {
  for (size_t i = 0; i < values.size(); ++i) out[i] = std::isfinite(values[i]) ? values[i] : 0.0f;
}

}  // namespace regatta::base
