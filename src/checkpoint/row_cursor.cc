#include "checkpoint/row_cursor.h"

#include "checkpoint/block.h"

namespace regatta::checkpoint {

void ShardCursor::Start(const DataFile& file, const ShardExtent& extent, int row_width) {
  file_ = &file;
  shard_ = extent.shard;
  row_width_ = static_cast<size_t>(row_width);
  first_ = true;
  blocks_.Start(file, extent.extent, RowBytes(row_width_), RowsPerBlock(row_width_));
}

absl::StatusOr<bool> ShardCursor::NextBlock() {
  ASSIGN_OR_RETURN(const bool more, blocks_.Next());
  if (!more) return false;
  for (const base::Key key : keys()) {
    if (base::ShardOf(key) != shard_)
      return file_->Damage(blocks_.offset(), absl::StrCat("key ", key, " does not belong to shard ", shard_));
    if (!first_ && key <= last_)
      return file_->Damage(blocks_.offset(), absl::StrCat("key ", key, " follows key ", last_));
    last_ = key;
    first_ = false;
  }
  return true;
}

std::span<const base::Key> ShardCursor::keys() const {
  return {reinterpret_cast<const base::Key*>(blocks_.payload()), blocks_.items()};
}

std::span<const float> ShardCursor::rows() const {
  return {reinterpret_cast<const float*>(blocks_.payload() + 8 * size_t{blocks_.items()}),
          blocks_.items() * row_width_};
}

MergedRows::MergedRows(std::vector<std::shared_ptr<const DataFile>> files, std::span<const ShardExtent> extents,
                       int row_width)
    : files_(std::move(files)), width_(static_cast<size_t>(row_width)), at_(extents.size(), 0) {
  for (const ShardExtent& extent : extents) {
    cursors_.push_back(std::make_unique<ShardCursor>(0));
    cursors_.back()->Start(*files_[extent.extent.file], extent, row_width);
  }
}

// Puts the row that cursor is at among the heads, reading its next block where the present one is used up.
absl::Status MergedRows::Push(uint32_t cursor) {
  ShardCursor& c = *cursors_[cursor];
  if (at_[cursor] == c.blocks().items() || !started_) {
    ASSIGN_OR_RETURN(const bool more, c.NextBlock());
    at_[cursor] = 0;
    if (!more) return absl::OkStatus();
  }
  heads_.push(Head{c.keys()[at_[cursor]], cursor});
  return absl::OkStatus();
}

absl::Status MergedRows::Advance(uint32_t cursor) {
  ++at_[cursor];
  return Push(cursor);
}

absl::StatusOr<bool> MergedRows::Next() {
  if (!started_) {
    for (uint32_t i = 0; i < cursors_.size(); ++i) RETURN_IF_ERROR(Push(i));
    started_ = true;
  } else if (!row_.empty()) {
    RETURN_IF_ERROR(Advance(last_));
  }
  if (heads_.empty()) {
    row_ = {};
    return false;
  }
  const Head head = heads_.top();
  heads_.pop();
  last_ = head.cursor;
  key_ = head.key;
  while (!heads_.empty() && heads_.top().key == key_) {  // older rows of the key
    const uint32_t older = heads_.top().cursor;
    heads_.pop();
    RETURN_IF_ERROR(Advance(older));
  }
  row_ = cursors_[last_]->rows().subspan(at_[last_] * width_, width_);
  return true;
}

}  // namespace regatta::checkpoint
