// Cuts a ByteSource into blocks of whole lines, handed out in place. A line longer than the limit is dropped in
// bounded memory and reported. A byte order mark at the start of a file is left out.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/source/byte_source.h"

namespace regatta::data {

struct LineBlock {
  // Whole lines, each ended by '\n' (the last line of a file gets one), with kPadding readable bytes behind. Valid
  // until the next call.
  std::string_view text;
  uint64_t dropped_line_bytes = 0;  // a line of that many bytes followed the text and was dropped; 0 = none
  uint64_t disk_bytes = 0;
};

// The lines that start in bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX;
};

class LineSource {
 public:
  LineSource(size_t block_bytes, size_t max_line_bytes);

  // Starts over with `bytes`, which is to give the file from range.begin - 1 on (from 0 where begin is 0). Keeps
  // memory.
  void Open(std::unique_ptr<ByteSource> bytes, ByteRange range = {});
  // False at the end. A block may have no text where it reports a dropped line.
  absl::StatusOr<bool> Next(LineBlock* block);

 private:
  absl::Status Fill();
  absl::Status SkipPartialLine();
  absl::StatusOr<uint64_t> DropLine();
  size_t WantedBytes() const;
  size_t WholeLines() const;
  size_t LinesBeforeLongOne(size_t size) const;

  // Constant after construction.
  const size_t block_bytes_;
  const size_t max_line_bytes_;

  std::unique_ptr<ByteSource> bytes_;
  ByteRange range_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // unread bytes are [begin_, end_) of buffer_
  size_t end_ = 0;
  uint64_t offset_ = 0;  // of begin_ in the file
  bool ended_ = false;   // bytes_ has no more
  bool skip_partial_ = false;
  uint64_t disk_bytes_ = 0;  // of bytes_, at the last block
};

}  // namespace regatta::data
