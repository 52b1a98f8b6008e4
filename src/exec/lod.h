// The levels of offsets by which Fluid cuts a tensor's rows into sequences. Level 0 is the outermost one.
//   [[0, 2, 3], [0, 1, 4, 6]]: two samples of 2 and 1 sequences, of 1, 3 and 2 rows
// Thread-safety: a plain value; copies share the offsets, which never change.
// Invariant: what Make gave fits its rows: a level begins at 0, never decreases, and ends where the next level, or the
// rows, end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace regatta::exec {

class Lod {
 public:
  using Offsets = std::vector<int64_t>;

  // No levels: every row is a sample.
  Lod() = default;

  // INVALID_ARGUMENT names the level and what is wrong with it.
  static absl::StatusOr<Lod> Make(std::vector<Offsets> levels, int64_t rows);

  // OK if the offsets also fit another tensor of `rows` rows.
  absl::Status Check(int64_t rows) const;

  size_t size() const { return levels_ ? levels_->size() : 0; }
  bool empty() const { return size() == 0; }
  // `i` < size().
  const Offsets& level(size_t i) const { return (*levels_)[i]; }
  // The innermost level, whose offsets are rows; not of an empty Lod.
  const Offsets& last() const { return levels_->back(); }
  // Levels [0, count), which cut the sequences of level `count` as rows.
  Lod First(size_t count) const;

  // "[[0, 2, 3]]"
  std::string Text() const;
  friend bool operator==(const Lod& a, const Lod& b);

 private:
  explicit Lod(std::vector<Offsets> levels);

  std::shared_ptr<const std::vector<Offsets>> levels_;
};

}  // namespace regatta::exec
