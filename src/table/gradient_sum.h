// The sum of several pushes to one table: one row a key, added in the order in which the pushes are given, so that for
// a fixed order the bits are the same wherever it is done.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/step.h"

namespace regatta::table {

class GradientSum {
 public:
  // All are of one table, one width and one learning rate; their keys are grouped by virtual shard. The view lives
  // until the next Sum.
  base::TableGrads Sum(std::span<const base::TableGrads> pushes);

 private:
  void AddRow(base::Key key, uint64_t hash, const float* row, size_t width);

  std::vector<base::Key> keys_;
  std::vector<float> rows_;
  std::vector<uint32_t> shard_begin_;
  std::vector<uint32_t> slots_;  // an open-addressing index into keys_
};

}  // namespace regatta::table
