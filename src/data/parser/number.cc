#include "data/parser/number.h"

#include <cmath>

#include "fast_float/fast_float.h"

namespace regatta::data {
namespace number {

const char* ScanLongId(const char* p, uint64_t* id) {
  const uint64_t first = Load8(p) ^ kZeros;
  if (!AreDigits(first)) return nullptr;
  uint64_t value = Combine8(first);
  p += 8;
  const uint64_t chunk = Load8(p);
  const int bits = std::countr_zero(~chunk & kDigitBits) & ~7;
  if (bits == 0) {
    *id = value;
    return p;
  }
  const uint64_t digits = (chunk ^ kZeros) << (64 - bits);
  if (!AreDigits(digits)) return nullptr;
  value = value * kPowers[bits >> 3] + Combine8(digits);
  p += bits >> 3;
  for (; static_cast<unsigned char>(*p - '0') <= 9; ++p) {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(*p - '0'), &value))
      return nullptr;
  }
  *id = value;
  return p;
}

const char* ScanOddDecimal(const char* p, float* value) { return ScanDecimal(p, value); }

}  // namespace number

bool ParseId(const char* begin, const char* end, uint64_t* id) {
  if (begin >= end) return false;
  const size_t size = static_cast<size_t>(end - begin);
  const uint64_t digits = (number::Load8(begin) ^ number::kZeros) << (size < 8 ? 64 - 8 * size : 0);
  if (!number::AreDigits(digits)) return false;
  uint64_t value = number::Combine8(digits);
  for (const char* p = begin + 8; p < end; ++p) {
    const uint64_t digit = static_cast<unsigned char>(*p - '0');
    if (digit > 9 || __builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return false;
  }
  *id = value;
  return true;
}

bool ParseDecimal(const char* begin, const char* end, float* value) {
  if (begin >= end) return false;
  if (ScanDecimal(begin, value) == end) return true;
  const bool plus = *begin == '+';
  begin += plus;
  // fast_float takes "nan" and "inf" too.
  const char* const digits = begin < end && *begin == '-' && !plus ? begin + 1 : begin;
  if (digits == end || (static_cast<unsigned char>(*digits - '0') > 9 && *digits != '.')) return false;
  double wide = 0;
  const auto result = fast_float::from_chars(begin, end, wide);
  if (result.ec != std::errc() || result.ptr != end) return false;
  *value = static_cast<float>(wide);
  return std::isfinite(*value);
}

}  // namespace regatta::data
