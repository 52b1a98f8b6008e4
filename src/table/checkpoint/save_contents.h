// What a save is made of, whoever holds it: live tables, servers, or arrays that were imported.
// Thread-safety: ForEachRow of different shards is concurrent. Nothing may change while a save is written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "table/checkpoint/run_state.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::table {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const SparseTableConfig& config() const = 0;
  virtual int row_width() const = 0;
  virtual int pull_width() const = 0;
  virtual uint64_t ShardRows(uint32_t shard) const = 0;
  virtual absl::Status ForEachRow(uint32_t shard, const SparseTable::RowFn& fn) const = 0;
};

struct DenseContents {
  DenseTableConfig config;
  uint64_t updates = 0;
  std::vector<std::span<const float>> arrays;  // the values, then each state
};

struct SaveContents {
  std::vector<const RowSource*> sparse;
  std::optional<DenseContents> dense;
  RunState run;
};

}  // namespace regatta::table
