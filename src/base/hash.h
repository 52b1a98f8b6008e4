// Stable 64-bit hashes. Files, routing and initial values depend on them: they never change.
#pragma once

#include <cstdint>
#include <string_view>

namespace regatta::base {

// A bijective mix of 64 bits (the finaliser of splitmix64).
constexpr uint64_t Mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Order-dependent combination of two hashes.
constexpr uint64_t Combine64(uint64_t a, uint64_t b) { return Mix64(a ^ (Mix64(b) + 0x632BE59BD9B4E019ULL)); }

// FNV-1a over the bytes, then Mix64.
constexpr uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0) {
  uint64_t h = 0xCBF29CE484222325ULL ^ Mix64(seed);
  for (unsigned char c : bytes) h = (h ^ c) * 0x100000001B3ULL;
  return Mix64(h);
}

}  // namespace regatta::base
