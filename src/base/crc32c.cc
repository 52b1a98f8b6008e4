#include "base/crc32c.h"

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace regatta::base {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Portable(const uint8_t* p, size_t size, uint32_t crc) {
  for (size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ kTable[(crc ^ p[i]) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
// Multiplies a CRC register by x^(8n) mod P: what appending n zero bytes does to it.
struct ZeroShift {
  std::array<std::array<uint32_t, 256>, 4> table{};
  explicit ZeroShift(size_t n) {
    std::array<uint32_t, 32> image{};
    for (int bit = 0; bit < 32; ++bit) {
      uint32_t crc = 1u << bit;
      for (size_t i = 0; i < n; ++i) crc = (crc >> 8) ^ kTable[crc & 0xFF];
      image[bit] = crc;
    }
    for (int byte = 0; byte < 4; ++byte) {
      for (uint32_t v = 0; v < 256; ++v) {
        uint32_t crc = 0;
        for (int bit = 0; bit < 8; ++bit)
          if (v >> bit & 1) crc ^= image[byte * 8 + bit];
        table[byte][v] = crc;
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return table[0][crc & 0xFF] ^ table[1][crc >> 8 & 0xFF] ^ table[2][crc >> 16 & 0xFF] ^ table[3][crc >> 24];
  }
};

// Takes 3 * kLane bytes at a time, as three independent streams that hide the instruction's latency; their registers
// are then combined. What is left, less than that, is the caller's.
template <size_t kLane>
__attribute__((target("sse4.2"))) uint32_t InThree(const uint8_t*& p, size_t& size, uint32_t crc) {
  static const ZeroShift shift(kLane);
  while (size >= 3 * kLane) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      uint64_t x, y, z;
      std::memcpy(&x, p + i, 8);
      std::memcpy(&y, p + kLane + i, 8);
      std::memcpy(&z, p + 2 * kLane + i, 8);
      a = _mm_crc32_u64(a, x);
      b = _mm_crc32_u64(b, y);
      c = _mm_crc32_u64(c, z);
    }
    crc = shift(shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b)) ^ static_cast<uint32_t>(c);
    p += 3 * kLane;
    size -= 3 * kLane;
  }
  return crc;
}

// The constant that moves half of a register `bits` ahead in the message: x^bits mod P, reflected as the data is.
constexpr uint64_t Ahead(int bits) {
  uint32_t power = uint32_t{1} << 31;
  for (; bits > 0; --bits) power = (power >> 1) ^ ((power & 1) ? 0x82F63B78u : 0u);
  return uint64_t{power} << 1;
}

constexpr size_t kFolded = 8 * sizeof(__m256i);  // bytes of a step of Fold

#define REGATTA_FOLDS __attribute__((target("vpclmulqdq,pclmul,avx2,sse4.2")))

REGATTA_FOLDS inline __m256i Bytes32(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// `sum` as it counts `kBits` later in the message.
template <int kBits>
REGATTA_FOLDS inline __m256i Moved(__m256i sum) {
  const __m256i by = _mm256_broadcastsi128_si256(
      _mm_set_epi64x(static_cast<int64_t>(Ahead(kBits - 32)), static_cast<int64_t>(Ahead(kBits + 32))));
  return _mm256_xor_si256(_mm256_clmulepi64_epi128(sum, by, 0x00), _mm256_clmulepi64_epi128(sum, by, 0x11));
}

// Takes kFolded bytes at a time: what has been read is moved to where the next bytes stand and added to them, without
// carries, until 16 bytes are left that have the CRC of all. What remains, less than kFolded, is the caller's.
REGATTA_FOLDS uint32_t Fold(const uint8_t*& p, size_t& size, uint32_t crc) {
  constexpr int kSums = kFolded / sizeof(__m256i);
  __m256i sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = Bytes32(p + 32 * i);
  sums[0] = _mm256_xor_si256(sums[0], _mm256_setr_epi32(static_cast<int>(crc), 0, 0, 0, 0, 0, 0, 0));
  for (p += kFolded, size -= kFolded; size >= kFolded; p += kFolded, size -= kFolded)
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_xor_si256(Moved<8 * kFolded>(sums[i]), Bytes32(p + 32 * i));
  for (int i = 1; i < kSums; ++i) sums[i] = _mm256_xor_si256(Moved<256>(sums[i - 1]), sums[i]);
  const __m256i last = sums[kSums - 1];
  const __m128i rest = _mm_xor_si128(_mm256_castsi256_si128(Moved<128>(last)), _mm256_extracti128_si256(last, 1));
  const uint64_t first = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_extract_epi64(rest, 0)));
  return static_cast<uint32_t>(_mm_crc32_u64(first, static_cast<uint64_t>(_mm_extract_epi64(rest, 1))));
}

__attribute__((target("sse4.2"))) uint32_t Hardware(const uint8_t* p, size_t size, uint32_t crc) {
  static const bool folds = __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2");
  if (folds && size >= kFolded) crc = Fold(p, size, crc);
  crc = InThree<2048>(p, size, crc);
  crc = InThree<128>(p, size, crc);
  uint64_t wide = crc;
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t x;
    std::memcpy(&x, p, 8);
    wide = _mm_crc32_u64(wide, x);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; ++p, --size) crc = _mm_crc32_u8(crc, *p);
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(const void* data, size_t size, uint32_t crc) {
  const auto* p = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  if (has_sse42) return ~Hardware(p, size, ~crc);
#endif
  return ~Portable(p, size, ~crc);
}

}  // namespace regatta::base
