#include "table/initializer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/multiversion.h"
#include "base/random.h"

namespace regatta::table {
namespace {

// base::UniformFloat with the 24 bits converted as a 32-bit integer, which vectorises.
REGATTA_MULTIVERSION void FillUniform(uint64_t stream, float low, float width, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = base::RandomBits(stream, static_cast<uint64_t>(i));
    out[i] = low + width * (static_cast<float>(static_cast<int32_t>(bits >> 40)) * 0x1p-24f);
  }
}

struct Fan {
  double in = 1;
  double out = 1;
};

// [in, out] or [out, in] (the formulas are symmetric); more dimensions multiply both, as in a convolution.
Fan FanOf(std::span<const int64_t> shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (int64_t d : shape.subspan(2)) field *= static_cast<double>(d);
  return {static_cast<double>(shape[0]) * field, static_cast<double>(shape[1]) * field};
}

absl::Status CheckRange(const InitializerConfig& c) {
  if (!std::isfinite(c.a) || !std::isfinite(c.b)) {
    return absl::InvalidArgumentError(absl::StrCat("initializer ", c.name, ": a and b must be finite"));
  }
  if (c.name == "uniform" && c.a > c.b) {
    return absl::InvalidArgumentError(
        absl::StrCat("initializer uniform: a must not be above b, got ", c.a, " and ", c.b));
  }
  if (c.name == "normal" && c.b < 0) {
    return absl::InvalidArgumentError(absl::StrCat("initializer normal: b (the deviation) is negative: ", c.b));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Initializer> Initializer::Create(const InitializerConfig& config) {
  RETURN_IF_ERROR(CheckRange(config));
  if (config.name == "zeros") return Initializer(Kind::kConstant, 0, 0);
  if (config.name == "constant") return Initializer(Kind::kConstant, config.a, 0);
  if (config.name == "uniform") return Initializer(Kind::kUniform, config.a, config.b);
  if (config.name == "normal") return Initializer(Kind::kNormal, config.a, config.b);
  return absl::InvalidArgumentError(
      absl::StrCat("initializer: there is no '", config.name,
                   "'; use zeros, constant, uniform, normal, or for dense parameters xavier_uniform, xavier_normal"));
}

absl::StatusOr<Initializer> Initializer::Create(const InitializerConfig& config, std::span<const int64_t> shape) {
  const Fan fan = FanOf(shape);
  if (config.name == "xavier_uniform") {
    const double limit = std::sqrt(6 / (fan.in + fan.out));
    return Initializer(Kind::kUniform, -limit, limit);
  }
  if (config.name == "xavier_normal") return Initializer(Kind::kNormal, 0, std::sqrt(2 / (fan.in + fan.out)));
  return Create(config);
}

void Initializer::Fill(uint64_t stream, std::span<float> out) const {
  switch (kind_) {
    case Kind::kConstant:
      std::fill(out.begin(), out.end(), static_cast<float>(a_));
      return;
    case Kind::kUniform:
      FillUniform(stream, static_cast<float>(a_), static_cast<float>(b_ - a_), out.data(),
                  static_cast<int64_t>(out.size()));
      return;
    case Kind::kNormal:
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<float>(a_ + b_ * base::RandomNormal(stream, i));
      }
      return;
  }
}

}  // namespace regatta::table
