// How a variable gets its first value: one operation of the startup program.
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "program/block.h"

namespace regatta::program {

struct Initializer {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal, kTruncatedNormal, kXavier, kMsra, kValues };
  enum class Distribution : uint8_t { kUniform, kNormal };  // of kXavier and kMsra

  Kind kind = Kind::kConstant;
  double a = 0;  // kConstant: the value; kUniform: from; kNormal and kTruncatedNormal: the mean
  double b = 0;  // kUniform: to; kNormal and kTruncatedNormal: the deviation
  Distribution distribution = Distribution::kUniform;
  int64_t fan_in = 0;   // of kXavier and kMsra; 0 = from the shape
  int64_t fan_out = 0;  // of kXavier
  int64_t seed = 0;     // 0 = the startup program's
  // Of kValues: as many as the variable has elements.
  std::variant<std::vector<double>, std::vector<int64_t>> values;

  static Initializer Constant(double value) { return Make(Kind::kConstant, value, 0); }
  static Initializer Uniform(double low, double high, int64_t seed = 0) {
    return Make(Kind::kUniform, low, high, seed);
  }
  static Initializer Normal(double mean, double deviation, int64_t seed = 0) {
    return Make(Kind::kNormal, mean, deviation, seed);
  }
  static Initializer TruncatedNormal(double mean, double deviation, int64_t seed = 0) {
    return Make(Kind::kTruncatedNormal, mean, deviation, seed);
  }
  static Initializer Xavier(Distribution distribution = Distribution::kUniform) {
    Initializer made = Make(Kind::kXavier, 0, 0);
    made.distribution = distribution;
    return made;
  }
  static Initializer Msra(Distribution distribution = Distribution::kUniform) {
    Initializer made = Make(Kind::kMsra, 0, 0);
    made.distribution = distribution;
    return made;
  }
  friend bool operator==(const Initializer&, const Initializer&) = default;

 private:
  static Initializer Make(Kind kind, double a, double b, int64_t seed = 0) {
    Initializer made;
    made.kind = kind;
    made.a = a;
    made.b = b;
    made.seed = seed;
    return made;
  }
};

// Appends the operation that gives `variable`, which `block` has, its first value. `seed` is used by random ones that
// have none of their own.
absl::Status AppendInitializer(Block& block, const Variable& variable, const Initializer& initializer, int64_t seed,
                               const CallSite& site);

}  // namespace regatta::program
