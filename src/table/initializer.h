// Initial values by counter: element i of a stream is a function of (stream, i), so a row or a parameter starts from
// the same bits in every process and at any time.
// Thread-safety: constant after construction.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/hash.h"
#include "base/key.h"
#include "base/status.h"
#include "table/table_config.h"

namespace regatta::table {

class Initializer {
 public:
  // For the rows of a sparse table: xavier has no fan there and is refused.
  static absl::StatusOr<Initializer> Create(const InitializerConfig& config);
  // For a dense parameter; xavier takes its fan from the shape.
  static absl::StatusOr<Initializer> Create(const InitializerConfig& config, std::span<const int64_t> shape);

  // out[i] = value i of the stream.
  void Fill(uint64_t stream, std::span<float> out) const;

 private:
  enum class Kind : uint8_t { kConstant, kUniform, kNormal };
  Initializer(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}

  Kind kind_;
  double a_;  // the constant, the lower end or the mean
  double b_;  // the upper end or the standard deviation
};

// The stream of a row and of a dense parameter.
constexpr uint64_t TableStream(std::string_view table, uint64_t seed) { return base::HashBytes(table, seed); }
constexpr uint64_t RowStream(uint64_t table_stream, base::Key key) { return base::Combine64(table_stream, key); }
constexpr uint64_t ParameterStream(std::string_view name, uint64_t seed) {
  return base::HashBytes(name, base::Mix64(seed ^ 0xDE45E));
}

}  // namespace regatta::table
