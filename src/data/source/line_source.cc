#include "data/source/line_source.h"

#include <algorithm>
#include <cstring>

#include "data/parser/number.h"

namespace regatta::data {
namespace {

// Beyond a range's end only the rest of its last line is wanted.
constexpr size_t kTailBytes = 16 << 10;

// What some editors put in front of UTF-8; no part of the first line.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

const char* FindNewline(const char* begin, const char* end) {
  return begin == end ? nullptr : static_cast<const char*>(std::memchr(begin, '\n', static_cast<size_t>(end - begin)));
}

}  // namespace

LineSource::LineSource(size_t block_bytes, size_t max_line_bytes)
    : block_bytes_(block_bytes), max_line_bytes_(max_line_bytes), buffer_(block_bytes + kPadding + 1) {}

void LineSource::Open(std::unique_ptr<ByteSource> bytes, ByteRange range) {
  bytes_ = std::move(bytes);
  range_ = range;
  begin_ = end_ = 0;
  ended_ = false;
  skip_partial_ = range.begin > 0;
  offset_ = range.begin > 0 ? range.begin - 1 : 0;
  disk_bytes_ = 0;
}

size_t LineSource::WantedBytes() const {
  const uint64_t at = offset_ + (end_ - begin_);
  const size_t room = buffer_.size() - kPadding - 1 - end_;
  return at < range_.end ? static_cast<size_t>(std::min<uint64_t>(room, range_.end - at))
                         : std::min(room, std::max(kTailBytes, end_ - begin_));
}

// Moves the unread bytes to the front and reads more behind them.
absl::Status LineSource::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + kPadding + 1 >= buffer_.size()) {
    // The unread bytes are part of a line of at most max_line_bytes_: longer ones are dropped.
    buffer_.resize(std::min(2 * buffer_.size(), max_line_bytes_ + block_bytes_ + kPadding + 1));
  }
  // A pipe gives little at a time; a block is worth filling.
  while (!ended_) {
    const size_t wanted = WantedBytes();
    if (wanted == 0) break;
    ASSIGN_OR_RETURN(const size_t n, bytes_->Read(buffer_.data() + end_, wanted));
    end_ += n;
    ended_ = n == 0;
    if (offset_ + end_ >= range_.end) break;
  }
  return absl::OkStatus();
}

absl::Status LineSource::SkipPartialLine() {
  skip_partial_ = false;
  while (offset_ < range_.end) {
    if (begin_ == end_) {
      RETURN_IF_ERROR(Fill());
      if (begin_ == end_) return absl::OkStatus();
    }
    const char* const from = buffer_.data() + begin_;
    const char* const newline = FindNewline(from, buffer_.data() + end_);
    const size_t skipped = newline == nullptr ? end_ - begin_ : static_cast<size_t>(newline + 1 - from);
    begin_ += skipped;
    offset_ += skipped;
    if (newline != nullptr) return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Drops the line that starts at begin_. Returns its length without the newline.
absl::StatusOr<uint64_t> LineSource::DropLine() {
  uint64_t dropped = 0;
  while (true) {
    if (begin_ == end_) {
      RETURN_IF_ERROR(Fill());
      if (begin_ == end_) return dropped;
    }
    const char* const from = buffer_.data() + begin_;
    const char* const newline = FindNewline(from, buffer_.data() + end_);
    const size_t size = newline == nullptr ? end_ - begin_ : static_cast<size_t>(newline - from);
    dropped += size;
    begin_ += size + (newline != nullptr);
    offset_ += size + (newline != nullptr);
    if (newline != nullptr) return dropped;
  }
}

// Bytes of the buffered whole lines that start in the range.
size_t LineSource::WholeLines() const {
  const char* const from = buffer_.data() + begin_;
  const size_t unread = end_ - begin_;
  const uint64_t left = range_.end - offset_;
  if (left <= unread) {
    // The last line of the range is the one that holds the range's last byte.
    const char* const newline = FindNewline(from + left - 1, from + unread);
    if (newline != nullptr) return static_cast<size_t>(newline + 1 - from);
  }
  const size_t limit = static_cast<size_t>(std::min<uint64_t>(unread, left - 1));
  const void* const newline = limit == 0 ? nullptr : memrchr(from, '\n', limit);
  return newline == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(newline) + 1 - from);
}

// Bytes of the lines in front of the first one that is too long, out of `size` bytes of whole lines.
size_t LineSource::LinesBeforeLongOne(size_t size) const {
  const char* const from = buffer_.data() + begin_;
  const char* line = from;
  while (line < from + size) {
    const char* const newline = FindNewline(line, from + size);
    if (static_cast<size_t>(newline - line) > max_line_bytes_) break;
    line = newline + 1;
  }
  return static_cast<size_t>(line - from);
}

absl::StatusOr<bool> LineSource::Next(LineBlock* block) {
  *block = LineBlock();
  if (skip_partial_) RETURN_IF_ERROR(SkipPartialLine());
  const uint64_t first = offset_;
  while (true) {
    if (offset_ >= range_.end || (ended_ && begin_ == end_)) return false;
    const size_t unread = end_ - begin_;
    size_t size = WholeLines();
    if (size == 0 && ended_) {
      buffer_[end_++] = '\n';
      size = unread + 1;
    }
    const bool has_long_line = size > max_line_bytes_ || (size == 0 && unread > max_line_bytes_);
    if (has_long_line) size = LinesBeforeLongOne(size);
    if (size > 0) {
      block->text = {buffer_.data() + begin_, size};
      begin_ += size;
      offset_ += size;
      if (first == 0 && range_.begin == 0 && block->text.starts_with(kByteOrderMark))
        block->text.remove_prefix(kByteOrderMark.size());
      break;
    }
    if (has_long_line) {
      ASSIGN_OR_RETURN(block->dropped_line_bytes, DropLine());
      break;
    }
    RETURN_IF_ERROR(Fill());
  }
  if (range_.end != UINT64_MAX) {
    block->disk_bytes = offset_ - first;
  } else {
    block->disk_bytes = bytes_->disk_bytes() - disk_bytes_;
    disk_bytes_ = bytes_->disk_bytes();
  }
  return true;
}

}  // namespace regatta::data
