// What a save is made of. The source may be live tables, servers, or imported arrays.
// Thread-safety: ForEachRow of different shards is concurrent. Nothing that it shows may change while a save is
// written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "checkpoint/run_state.h"
#include "checkpoint/save_part.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::checkpoint {

enum class Visits : uint8_t { kAny, kOne };  // how often a shard of a source can be visited

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const table::SparseTableConfig& config() const = 0;
  virtual int row_width() const = 0;
  virtual int pull_width() const = 0;
  virtual uint64_t ShardRows(uint32_t shard) const = 0;
  virtual absl::Status ForEachRow(uint32_t shard, const table::SparseTable::RowFn& fn) const = 0;
  virtual Visits visits() const { return Visits::kAny; }
};

struct DenseContents {
  table::DenseTableConfig config;
  uint64_t updates = 0;
  std::vector<std::span<const float>> arrays;  // the values, then each state; of the part's block where there is one
};

struct SaveContents {
  std::vector<const RowSource*> sparse;
  std::optional<DenseContents> dense;
  RunState run;
  std::optional<SavePart> part;  // none: all of the model
  std::optional<SaveBase> base;  // none: all rows, not only changed ones
};

}  // namespace regatta::checkpoint
