// The rows of one virtual shard in the order of their keys, written as blocks of an extent.
// Memory: a shard's rows up to kSortBytes; a larger shard is visited once a range of keys, or held whole where its
// source can be visited once only.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/key.h"
#include "base/status.h"
#include "checkpoint/data_file.h"
#include "checkpoint/save_contents.h"

namespace regatta::checkpoint {

inline constexpr uint64_t kSortBytes = 8 << 20;

class RowSorter {
 public:
  explicit RowSorter(uint64_t sort_bytes = kSortBytes) : sort_bytes_(sort_bytes) {}

  // One extent of all rows of `shard`, none where it is empty (items == 0).
  absl::StatusOr<Extent> Write(const RowSource& source, uint32_t shard, DataFileWriter& out);

 private:
  absl::StatusOr<std::vector<base::Key>> RangeBounds(const RowSource& source, uint32_t shard);
  absl::Status Gather(const RowSource& source, uint32_t shard, base::Key least, base::Key most);
  absl::Status Emit(DataFileWriter& out);
  absl::Status FlushBlock(DataFileWriter& out);

  const uint64_t sort_bytes_;
  size_t width_ = 0;
  std::vector<std::pair<base::Key, uint32_t>> order_;  // key, index of its row in rows_
  std::vector<float> rows_;
  std::vector<base::Key> block_keys_;
  std::vector<char> block_;  // room for the keys of a full block, then its rows
  size_t block_rows_ = 0;
};

}  // namespace regatta::checkpoint
