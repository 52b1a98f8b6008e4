// Counter-based random numbers: value i of a stream is a pure function of (seed, i), whoever asks and when.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/hash.h"

namespace regatta::base {

// Uniform in [0, 1), 24 bits.
constexpr float UniformFloat(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24f; }
// Uniform in [0, 1), 53 bits.
constexpr double UniformDouble(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

constexpr uint64_t RandomBits(uint64_t seed, uint64_t i) { return Mix64(seed + i * 0x9E3779B97F4A7C15ULL); }

// Standard normal by Box-Muller from two draws of the stream.
inline double RandomNormal(uint64_t seed, uint64_t i) {
  const double u = 1.0 - UniformDouble(RandomBits(seed, 2 * i));
  const double v = UniformDouble(RandomBits(seed, 2 * i + 1));
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

// A sequential generator over the same stream; meets UniformRandomBitGenerator.
class Rng {
 public:
  using result_type = uint64_t;
  explicit Rng(uint64_t seed) : seed_(Mix64(seed)) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return RandomBits(seed_, i_++); }
  double Uniform() { return UniformDouble((*this)()); }
  // Uniform in [0, n), n > 0.
  uint64_t Below(uint64_t n) { return static_cast<uint64_t>((static_cast<unsigned __int128>((*this)()) * n) >> 64); }

 private:
  uint64_t seed_;
  uint64_t i_ = 0;
};

}  // namespace regatta::base
