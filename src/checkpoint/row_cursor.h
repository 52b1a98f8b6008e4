// Rows of a saved table in order, a block at a time in memory.
// Thread-safety: a cursor belongs to one thread; many may read one save.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <vector>

#include "base/key.h"
#include "base/status.h"
#include "checkpoint/data_file.h"
#include "checkpoint/manifest.h"

namespace regatta::checkpoint {

// The blocks of one shard's extent: keys ascend, all belong to the shard.
class ShardCursor {
 public:
  explicit ShardCursor(size_t window) : blocks_(window) {}

  void Start(const DataFile& file, const ShardExtent& extent, int row_width);
  // False at the end of the shard.
  absl::StatusOr<bool> NextBlock();
  std::span<const base::Key> keys() const;
  std::span<const float> rows() const;  // row_width floats a key
  const BlockReader& blocks() const { return blocks_; }

 private:
  BlockReader blocks_;
  const DataFile* file_ = nullptr;
  uint32_t shard_ = 0;
  size_t row_width_ = 0;
  bool first_ = true;
  base::Key last_ = 0;
};

// The rows of some extents of a table in the order of their keys. Of a key that several have, the last one's row.
class MergedRows {
 public:
  MergedRows(std::vector<std::shared_ptr<const DataFile>> files, std::span<const ShardExtent> extents, int row_width);

  // False after the last row.
  absl::StatusOr<bool> Next();
  base::Key key() const { return key_; }
  std::span<const float> row() const { return row_; }

 private:
  struct Head {
    base::Key key;
    uint32_t cursor;
    bool operator>(const Head& other) const { return key != other.key ? key > other.key : cursor < other.cursor; }
  };
  absl::Status Push(uint32_t cursor);
  absl::Status Advance(uint32_t cursor);

  const std::vector<std::shared_ptr<const DataFile>> files_;
  const size_t width_;
  std::vector<std::unique_ptr<ShardCursor>> cursors_;
  std::vector<size_t> at_;  // place in each cursor's block
  std::priority_queue<Head, std::vector<Head>, std::greater<Head>> heads_;
  bool started_ = false;
  base::Key key_ = 0;
  std::span<const float> row_;
  uint32_t last_ = 0;  // the cursor of the present row
};

}  // namespace regatta::checkpoint
