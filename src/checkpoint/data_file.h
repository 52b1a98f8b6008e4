// The data files of a checkpoint: blocks appended by one writer, read at any place by many readers.
// Thread-safety: a DataFileWriter belongs to one thread; DataFile is concurrent; a BlockReader belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "checkpoint/block.h"
#include "checkpoint/manifest.h"

namespace regatta::checkpoint {

class DataFileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<DataFileWriter>> Create(const std::string& folder, uint32_t index);

  // An extent is what is appended between Begin and End.
  void BeginExtent();
  absl::Status AppendBlock(const void* payload, uint32_t payload_bytes, uint32_t items);
  Extent EndExtent();
  // Afterwards the file survives a power loss.
  absl::StatusOr<DataFileEntry> Finish();

 private:
  DataFileWriter(std::unique_ptr<base::AppendFile> file, uint32_t index) : file_(std::move(file)), index_(index) {}

  std::unique_ptr<base::AppendFile> file_;
  const uint32_t index_;
  uint32_t file_crc_ = 0;
  uint64_t started_ = 0;  // bytes that the disk was told of
  Extent extent_;
};

// A data file open for reading, its size and header checked.
class DataFile {
 public:
  static absl::StatusOr<std::shared_ptr<const DataFile>> Open(const std::string& folder, uint32_t index,
                                                              const DataFileEntry& entry);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  absl::Status ReadAt(uint64_t offset, void* out, size_t size) const;
  absl::Status CheckHeader() const;
  // Lets the disk begin to read.
  void WillNeed(uint64_t offset, uint64_t size) const;
  // A DATA_LOSS about this file and byte.
  absl::Status Damage(uint64_t offset, std::string_view what) const;
  const std::string& path() const { return path_; }

 private:
  DataFile(std::string path, int fd, uint32_t index) : path_(std::move(path)), fd_(fd), index_(index) {}

  const std::string path_;
  const int fd_;
  const uint32_t index_;
};

// Walks the blocks of one extent, checking every length and checksum before it shows them.
class BlockReader {
 public:
  // `window` bytes are read at a time (a block at least).
  explicit BlockReader(size_t window) : window_(window) {}

  void Start(const DataFile& file, const Extent& extent, uint64_t item_bytes, uint64_t items_per_block);
  // False at the end of the extent, which has then been found whole.
  absl::StatusOr<bool> Next();
  // Skips blocks, unread, up to the one that holds item `item`.
  void SkipTo(uint64_t item);

  const char* payload() const { return buffer() + begin_ + sizeof(BlockHeader); }  // aligned to 8 bytes
  uint32_t items() const { return header_.items; }
  uint64_t first_item() const { return first_item_; }
  uint64_t offset() const { return block_offset_; }  // of the block in its file
  const BlockHeader& header() const { return header_; }

 private:
  char* buffer() const { return reinterpret_cast<char*>(const_cast<uint64_t*>(words_.data())); }
  absl::Status Ensure(size_t bytes);

  const size_t window_;
  const DataFile* file_ = nullptr;
  Extent extent_;
  uint64_t item_bytes_ = 0;
  uint64_t items_per_block_ = 0;
  std::vector<uint64_t> words_;
  size_t begin_ = 0, end_ = 0;  // of the bytes in the buffer; begin_ is at the present block
  uint64_t block_offset_ = 0;   // file offset of begin_
  uint64_t next_offset_ = 0;    // file offset of end_
  size_t block_bytes_ = 0;      // of the present block
  uint64_t first_item_ = 0;     // of the present block
  uint64_t items_done_ = 0;     // up to and with the present block
  BlockHeader header_;
  uint32_t crc_ = 0;
  bool skipped_ = false;
};

}  // namespace regatta::checkpoint
