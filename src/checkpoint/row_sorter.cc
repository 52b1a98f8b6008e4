#include "checkpoint/row_sorter.h"

#include <algorithm>
#include <cstring>

namespace regatta::checkpoint {

// Upper ends (inclusive) of key ranges that hold about sort_bytes_ each.
absl::StatusOr<std::vector<base::Key>> RowSorter::RangeBounds(const RowSource& source, uint32_t shard) {
  const uint64_t rows = source.ShardRows(shard);
  const uint64_t per_range = std::max<uint64_t>(1, sort_bytes_ / RowBytes(width_));
  std::vector<base::Key> bounds;
  if (rows > per_range && source.visits() == Visits::kAny) {
    std::vector<base::Key> keys;
    keys.reserve(rows);
    RETURN_IF_ERROR(source.ForEachRow(shard, [&](base::Key key, std::span<const float>) { keys.push_back(key); }));
    std::sort(keys.begin(), keys.end());
    for (uint64_t i = per_range - 1; i < keys.size(); i += per_range) bounds.push_back(keys[i]);
  }
  if (bounds.empty() || bounds.back() != ~base::Key{0}) bounds.push_back(~base::Key{0});
  return bounds;
}

absl::Status RowSorter::Gather(const RowSource& source, uint32_t shard, base::Key least, base::Key most) {
  order_.clear();
  rows_.clear();
  RETURN_IF_ERROR(source.ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
    if (key < least || key > most) return;
    order_.emplace_back(key, static_cast<uint32_t>(order_.size()));
    rows_.insert(rows_.end(), row.begin(), row.end());
  }));
  std::sort(order_.begin(), order_.end());
  return absl::OkStatus();
}

absl::Status RowSorter::Emit(DataFileWriter& out) {
  const size_t per_block = RowsPerBlock(width_);
  for (const auto& [key, index] : order_) {
    block_keys_.push_back(key);
    std::memcpy(block_.data() + 8 * per_block + 4 * width_ * block_rows_, rows_.data() + size_t{index} * width_,
                4 * width_);
    if (++block_rows_ == per_block) RETURN_IF_ERROR(FlushBlock(out));
  }
  return absl::OkStatus();
}

absl::Status RowSorter::FlushBlock(DataFileWriter& out) {
  if (block_rows_ == 0) return absl::OkStatus();
  // The keys go right in front of the rows; a short block starts later in the buffer.
  char* payload = block_.data() + 8 * (RowsPerBlock(width_) - block_rows_);
  std::memcpy(payload, block_keys_.data(), 8 * block_rows_);
  const size_t bytes = block_rows_ * RowBytes(width_);
  std::memset(payload + bytes, 0, RoundUp8(bytes) - bytes);
  RETURN_IF_ERROR(out.AppendBlock(payload, static_cast<uint32_t>(RoundUp8(bytes)), static_cast<uint32_t>(block_rows_)));
  block_keys_.clear();
  block_rows_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<Extent> RowSorter::Write(const RowSource& source, uint32_t shard, DataFileWriter& out) {
  width_ = static_cast<size_t>(source.row_width());
  block_.resize(RowsPerBlock(width_) * RowBytes(width_) + 8);
  out.BeginExtent();
  base::Key least = 0;
  ASSIGN_OR_RETURN(const std::vector<base::Key> bounds, RangeBounds(source, shard));
  for (const base::Key most : bounds) {
    RETURN_IF_ERROR(Gather(source, shard, least, most));
    RETURN_IF_ERROR(Emit(out));
    least = most + 1;
  }
  RETURN_IF_ERROR(FlushBlock(out));
  return out.EndExtent();
}

}  // namespace regatta::checkpoint
