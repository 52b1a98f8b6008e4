// How two saves differ, table by table, streaming.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/key.h"
#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"

namespace regatta::checkpoint {

struct TableDifference {
  std::string name;
  std::string schema;  // why the rows cannot be compared; "" = they were
  uint64_t equal = 0;  // rows (elements of dense parameters) with the same bits
  uint64_t different = 0;
  uint64_t only_a = 0;
  uint64_t only_b = 0;
  double max_abs = 0;              // of a − b over numbers; NaNs and infinities do not take part
  std::vector<std::string> first;  // up to five keys (elements) that differ or are missing

  bool same() const { return schema.empty() && different == 0 && only_a == 0 && only_b == 0; }
};

// A difference for each table, and one for each dense parameter ("dense.fc.weight").
absl::StatusOr<std::vector<TableDifference>> CompareSaves(const CheckpointReader& a, const CheckpointReader& b);

}  // namespace regatta::checkpoint
