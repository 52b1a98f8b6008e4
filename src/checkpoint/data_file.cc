#include "checkpoint/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/failpoint.h"

namespace regatta::checkpoint {
namespace {
constexpr uint64_t kWritebackBytes = 4 << 20;
}

absl::StatusOr<std::unique_ptr<DataFileWriter>> DataFileWriter::Create(const std::string& folder, uint32_t index) {
  RETURN_IF_ERROR(base::Failpoint("save.data"));
  ASSIGN_OR_RETURN(auto file, base::AppendFile::Create(absl::StrCat(folder, "/", DataFileName(index))));
  const std::string header = DataHeader(index);
  RETURN_IF_ERROR(file->Append(header));
  std::unique_ptr<DataFileWriter> writer(new DataFileWriter(std::move(file), index));
  writer->file_crc_ = base::Crc32c(header.data(), header.size());
  return writer;
}

void DataFileWriter::BeginExtent() { extent_ = Extent{index_, file_->size(), 0, 0, 0}; }

absl::Status DataFileWriter::AppendBlock(const void* payload, uint32_t payload_bytes, uint32_t items) {
  BlockHeader header{payload_bytes, items, base::Crc32c(payload, payload_bytes), 0};
  header.header_crc = header.ComputeCrc();
  extent_.crc = header.AddTo(extent_.crc);
  file_crc_ = header.AddTo(file_crc_);
  extent_.items += items;
  RETURN_IF_ERROR(file_->Append(&header, sizeof header));
  RETURN_IF_ERROR(file_->Append(payload, payload_bytes));
  // The disk works while the next rows are sorted, so that Finish has little left to wait for.
  if (file_->size() - started_ >= kWritebackBytes) {
    started_ = file_->size();
    file_->StartWriteback();
  }
  return absl::OkStatus();
}

Extent DataFileWriter::EndExtent() {
  extent_.bytes = file_->size() - extent_.offset;
  return extent_;
}

absl::StatusOr<DataFileEntry> DataFileWriter::Finish() {
  RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(file_->Close());
  return DataFileEntry{DataFileName(index_), file_->size(), file_crc_};
}

absl::StatusOr<std::shared_ptr<const DataFile>> DataFile::Open(const std::string& folder, uint32_t index,
                                                               const DataFileEntry& entry) {
  const std::string path = absl::StrCat(folder, "/", entry.name);
  const absl::StatusOr<int> fd = base::OpenForReading(path);
  if (absl::IsNotFound(fd.status()))
    return absl::DataLossError(absl::StrCat(path, " is missing; the manifest lists it with ", entry.bytes, " bytes"));
  if (absl::IsInvalidArgument(fd.status())) return absl::DataLossError(fd.status().message());
  if (!fd.ok()) return fd.status();
  std::shared_ptr<const DataFile> file(new DataFile(path, *fd, index));
  struct stat info;
  if (fstat(*fd, &info) != 0) return base::ErrnoStatus("cannot read the size of", path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size != entry.bytes)
    return file->Damage(std::min(size, entry.bytes),
                        absl::StrCat(size < entry.bytes ? "truncated" : "too long", ": it has ", size,
                                     " bytes, the manifest says ", entry.bytes));
  return file;
}

DataFile::~DataFile() { close(fd_); }

absl::Status DataFile::ReadAt(uint64_t offset, void* out, size_t size) const {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = pread(fd_, to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("cannot read byte ", offset, " of"), path_);
    if (n == 0) return Damage(offset, "the file ends here, too early");
    to += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

void DataFile::WillNeed(uint64_t offset, uint64_t size) const {
  posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
}

absl::Status DataFile::CheckHeader() const {
  std::string header(kDataHeaderBytes, '\0');
  RETURN_IF_ERROR(ReadAt(0, header.data(), header.size()));
  if (header != DataHeader(index_))
    return Damage(0, absl::StrCat("the 16-byte header is not that of data file ", index_, " of format version ",
                                  kCheckpointVersion));
  return absl::OkStatus();
}

absl::Status DataFile::Damage(uint64_t offset, std::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, ": byte ", offset, ": ", base::View(what)));
}

void BlockReader::Start(const DataFile& file, const Extent& extent, uint64_t item_bytes, uint64_t items_per_block) {
  file_ = &file;
  extent_ = extent;
  item_bytes_ = item_bytes;
  items_per_block_ = items_per_block;
  begin_ = end_ = block_bytes_ = 0;
  block_offset_ = next_offset_ = extent.offset;
  first_item_ = items_done_ = 0;
  crc_ = 0;
  skipped_ = false;
}

void BlockReader::SkipTo(uint64_t item) {
  const uint64_t blocks = item / items_per_block_;
  const uint64_t block = sizeof(BlockHeader) + RoundUp8(items_per_block_ * item_bytes_);
  block_offset_ = next_offset_ = extent_.offset + blocks * block;
  begin_ = end_ = block_bytes_ = 0;
  items_done_ = blocks * items_per_block_;
  skipped_ = true;
}

// Afterwards `bytes` from begin_ on are in the buffer; the extent has them.
absl::Status BlockReader::Ensure(size_t bytes) {
  if (end_ - begin_ >= bytes) return absl::OkStatus();
  if (words_.size() * 8 < std::max(bytes, window_)) {
    std::vector<uint64_t> larger((std::max(bytes, window_) + 7) / 8);
    if (end_ > begin_) std::memcpy(larger.data(), buffer() + begin_, end_ - begin_);
    words_.swap(larger);
  } else {
    std::memmove(buffer(), buffer() + begin_, end_ - begin_);
  }
  end_ -= begin_;
  begin_ = 0;
  const uint64_t left = extent_.offset + extent_.bytes - next_offset_;
  const size_t n = static_cast<size_t>(std::min<uint64_t>(left, std::max(bytes, window_) - end_));
  RETURN_IF_ERROR(file_->ReadAt(next_offset_, buffer() + end_, n));
  end_ += n;
  next_offset_ += n;
  return absl::OkStatus();
}

absl::StatusOr<bool> BlockReader::Next() {
  begin_ += block_bytes_;
  block_offset_ += block_bytes_;
  block_bytes_ = 0;
  first_item_ = items_done_;
  if (items_done_ == extent_.items) {
    if (!skipped_ && crc_ != extent_.crc)
      return file_->Damage(extent_.offset, "the extent is whole in itself but not the one of the manifest");
    return false;
  }
  const uint64_t items = std::min(items_per_block_, extent_.items - items_done_);
  const uint64_t payload_bytes = RoundUp8(items * item_bytes_);
  RETURN_IF_ERROR(Ensure(sizeof(BlockHeader) + payload_bytes));
  std::memcpy(&header_, buffer() + begin_, sizeof header_);
  if (header_.header_crc != header_.ComputeCrc())
    return file_->Damage(block_offset_, "block header: checksum mismatch");
  if (header_.items != items || header_.payload_bytes != payload_bytes)
    return file_->Damage(block_offset_, absl::StrCat("block of ", header_.items, " items in ", header_.payload_bytes,
                                                     " bytes where ", items, " in ", payload_bytes, " are due"));
  if (base::Crc32c(payload(), payload_bytes) != header_.payload_crc)
    return file_->Damage(block_offset_, absl::StrCat("block of ", payload_bytes, " bytes: checksum mismatch"));
  crc_ = header_.AddTo(crc_);
  block_bytes_ = sizeof(BlockHeader) + payload_bytes;
  items_done_ += items;
  return true;
}

}  // namespace regatta::checkpoint
