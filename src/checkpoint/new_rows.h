// Rows with given weights and the state of a new row, as tables are filled with: by virtual shard, keys ascending.
// Thread-safety: constant after construction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/key.h"
#include "base/status.h"
#include "table/table_config.h"

namespace regatta::checkpoint {

// Indices of keys by shard, then by key.
class ShardOrder {
 public:
  // INVALID_ARGUMENT names a key that comes twice.
  static absl::StatusOr<ShardOrder> Of(std::span<const base::Key> keys);

  std::span<const uint64_t> Shard(uint32_t shard) const {
    return std::span(order_).subspan(begin_[shard], begin_[shard + 1] - begin_[shard]);
  }

 private:
  std::vector<uint64_t> order_;
  std::vector<uint64_t> begin_;  // of each shard in order_
};

// The state that a new row of the table begins with. INVALID_ARGUMENT if rows of its accessor cannot be made from
// weights alone.
absl::StatusOr<std::vector<float>> NewRowState(const table::SparseTableConfig& config);

class NewRows {
 public:
  // Borrows `weights`: as many floats for each key as a pull of the table gives. INVALID_ARGUMENT for another number of
  // them, for NaN and Inf, and for a key that comes twice; it names the table.
  static absl::StatusOr<NewRows> Make(const table::SparseTableConfig& config, std::span<const base::Key> keys,
                                      std::span<const float> weights);

  // fn(shard, keys, rows) for at most `bytes` of a shard's rows at a time; stops at the first error.
  using BlockFn = std::function<absl::Status(uint32_t shard, std::span<const base::Key>, std::span<const float>)>;
  absl::Status ForEachBlock(size_t bytes, const BlockFn& fn) const;

 private:
  NewRows(std::span<const base::Key> keys, std::span<const float> weights, size_t pull_width, std::vector<float> state,
          ShardOrder order);

  const std::span<const base::Key> keys_;
  const std::span<const float> weights_;
  const size_t pull_width_;
  const std::vector<float> state_;
  const ShardOrder order_;
};

}  // namespace regatta::checkpoint
