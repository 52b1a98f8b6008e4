// Numbers of a text line, eight digits at a time. The Scan functions need no end: they stop at the first byte that is
// no digit, and read up to kPadding bytes past where they start, so text must be followed by that much readable memory.
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace regatta::data {

// Readable bytes behind the last line of a block; their values do not matter.
inline constexpr size_t kPadding = 64;

static_assert(std::endian::native == std::endian::little, "eight digits at a time needs the first one lowest");

namespace number {

inline constexpr uint64_t kZeros = 0x3030303030303030ULL;
// Set in every digit and clear in space, tab, line feed, carriage return, '.', '-', '+', 'e' and 'E'.
inline constexpr uint64_t kDigitBits = 0x1010101010101010ULL;
inline constexpr uint64_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
inline constexpr double kDecimals[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

[[gnu::always_inline]] inline uint64_t Load8(const char* p) {
  uint64_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return bytes;
}

// Whether every byte is 0 … 9.
[[gnu::always_inline]] inline bool AreDigits(uint64_t values) {
  return (((values + 0x7676767676767676ULL) | values) & 0x8080808080808080ULL) == 0;
}

// The number whose decimal digits are the bytes, the most significant lowest.
[[gnu::always_inline]] inline uint64_t Combine8(uint64_t digits) {
  digits = digits * 10 + (digits >> 8);
  constexpr uint64_t kPairs = 0x000000FF000000FFULL;
  return ((digits & kPairs) * 0x000F424000000064ULL + ((digits >> 16) & kPairs) * 0x0000271000000001ULL) >> 32;
}

inline constexpr uint64_t kLongPowers[] = {1,
                                           10,
                                           100,
                                           1'000,
                                           10'000,
                                           100'000,
                                           1'000'000,
                                           10'000'000,
                                           100'000'000,
                                           1'000'000'000,
                                           10'000'000'000,
                                           100'000'000'000,
                                           1'000'000'000'000,
                                           10'000'000'000'000,
                                           100'000'000'000'000,
                                           1'000'000'000'000'000,
                                           10'000'000'000'000'000};
// Powers of ten, and below zero.
inline constexpr double kSignedDecimals[2][16] = {
    {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15},
    {-1, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14, -1e15}};

// Ids of eight digits and more.
const char* ScanLongId(const char* p, uint64_t* id);
// ScanDecimal, out of line.
const char* ScanOddDecimal(const char* p, float* value);

}  // namespace number

// Reads an unsigned integer. Returns the byte behind its last digit, or nullptr where there is no digit or the value
// exceeds 2^64 - 1, or where what follows looks like a digit but is none.
[[gnu::always_inline]] inline const char* ScanId(const char* p, uint64_t* id) {
  using namespace number;  // NOLINT(build/namespaces)
  const uint64_t chunk = Load8(p);
  const uint64_t stop = ~chunk & kDigitBits;
  if (stop == 0) [[unlikely]]
    return ScanLongId(p, id);
  const int bits = std::countr_zero(stop) & ~7;
  if (bits == 0) [[unlikely]]
    return nullptr;
  const uint64_t digits = (chunk ^ kZeros) << (64 - bits);
  if (!AreDigits(digits)) [[unlikely]]
    return nullptr;
  *id = Combine8(digits);
  return p + (bits >> 3);
}

// Reads a plain decimal (no exponent, a fraction of 1 … 15 digits if there is a point) as the float nearest to the
// double nearest to it. Returns nullptr for everything else: ParseDecimal takes those.
[[gnu::always_inline]] inline const char* ScanDecimal(const char* p, float* value) {
  using namespace number;  // NOLINT(build/namespaces)
  const bool negative = *p == '-';
  p += negative;
  uint64_t whole = static_cast<uint64_t>(static_cast<unsigned char>(*p)) - '0';
  if (p[1] == '.') [[likely]] {
    if (whole > 9) [[unlikely]]
      return nullptr;
    p += 2;
  } else {
    const uint64_t chunk = Load8(p);
    const uint64_t stop = ~chunk & kDigitBits;
    if (stop == 0) [[unlikely]]
      return nullptr;
    const int bits = std::countr_zero(stop) & ~7;
    if (bits == 0) [[unlikely]]
      return nullptr;
    const uint64_t digits = (chunk ^ kZeros) << (64 - bits);
    if (!AreDigits(digits)) [[unlikely]]
      return nullptr;
    whole = Combine8(digits);
    p += bits >> 3;
    if (*p != '.') {
      const double magnitude = static_cast<double>(whole);
      *value = static_cast<float>(negative ? -magnitude : magnitude);
      return p;
    }
    ++p;
  }
  // Both halves of the fraction are always computed: whether it has more than seven digits is a coin toss in real
  // data, and a wrong guess costs more than the work.
  const uint64_t high_chunk = Load8(p);
  const uint64_t low_chunk = Load8(p + 8);
  const int high = std::countr_zero(~high_chunk & kDigitBits) >> 3;
  const int low_digits = std::countr_zero(~low_chunk & kDigitBits) >> 3;
  const int low = high == 8 ? low_digits : 0;
  if (high == 0 || low == 8) [[unlikely]]
    return nullptr;
  const uint64_t high_values = (high_chunk ^ kZeros) << (64 - 8 * high);
  const uint64_t low_values = ((low_chunk ^ kZeros) << (63 - 8 * low)) << 1;
  if (!AreDigits(high_values) || !AreDigits(low_values) || (whole > 9 && low > 3)) [[unlikely]]
    return nullptr;
  const uint64_t mantissa = (whole * kPowers[high] + Combine8(high_values)) * kPowers[low] + Combine8(low_values);
  if (mantissa > (uint64_t{1} << 53)) [[unlikely]]
    return nullptr;
  const double magnitude = static_cast<double>(static_cast<int64_t>(mantissa)) / kDecimals[high + low];
  *value = static_cast<float>(negative ? -magnitude : magnitude);
  return p + high + low;
}

// The whole of [begin, end) as a number, or false. A decimal must be finite as a float; an optional sign, fraction and
// exponent are taken. An id is digits only, up to 2^64 - 1. `end` must have kPadding readable bytes behind it.
bool ParseId(const char* begin, const char* end, uint64_t* id);
bool ParseDecimal(const char* begin, const char* end, float* value);

}  // namespace regatta::data
