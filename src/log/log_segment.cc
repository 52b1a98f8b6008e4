#include "log/log_segment.h"

#include <bit>
#include <cstring>

#include "base/crc32c.h"

namespace regatta::log {
namespace {

static_assert(std::endian::native == std::endian::little, "logs are read and written in place, little-endian");

constexpr char kMagic[] = "RGTALOG1";  // 8 bytes; the last is the version

struct HeaderBytes {
  char magic[8];
  uint64_t log;
  uint64_t first;
  uint32_t zero;
  uint32_t crc;  // of the bytes before it

  uint32_t ComputeCrc() const { return base::Crc32c(this, offsetof(HeaderBytes, crc)); }
};
static_assert(sizeof(HeaderBytes) == SegmentReader::kHeaderBytes);

struct RecordBytes {
  uint64_t index;
  uint64_t durable;
  uint32_t body_bytes;
  uint32_t body_crc;  // of the body and its padding
  uint32_t zero;
  uint32_t crc;  // of the bytes before it

  uint32_t ComputeCrc() const { return base::Crc32c(this, offsetof(RecordBytes, crc)); }
};
static_assert(sizeof(RecordBytes) == 32);

template <typename T>
std::string ToBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

std::string FormatSegmentHeader(const SegmentHeader& header) {
  HeaderBytes bytes{};
  std::memcpy(bytes.magic, kMagic, sizeof bytes.magic);
  bytes.log = header.log;
  bytes.first = header.first;
  bytes.crc = bytes.ComputeCrc();
  return ToBytes(bytes);
}

std::string FormatRecordHeader(uint64_t index, uint64_t durable, std::span<const std::string_view> parts) {
  RecordBytes bytes{};
  bytes.index = index;
  bytes.durable = durable;
  uint64_t size = 0;
  for (const std::string_view part : parts) {
    size += part.size();
    bytes.body_crc = base::Crc32c(part.data(), part.size(), bytes.body_crc);
  }
  constexpr char kZeros[8] = {};
  bytes.body_crc = base::Crc32c(kZeros, RecordPadding(size), bytes.body_crc);
  bytes.body_bytes = static_cast<uint32_t>(size);
  bytes.crc = bytes.ComputeCrc();
  return ToBytes(bytes);
}

absl::StatusOr<SegmentReader> SegmentReader::Open(std::string_view bytes) {
  HeaderBytes header;
  if (bytes.size() < sizeof header) return absl::DataLossError("it is shorter than a segment's header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof header.magic) != 0)
    return absl::DataLossError("it does not begin as a segment of this version of the log does");
  if (header.crc != header.ComputeCrc() || header.zero != 0)
    return absl::DataLossError("the checksum of its header is wrong");
  return SegmentReader(bytes, {header.log, header.first});
}

SegmentReader::Found SegmentReader::Broken(std::string_view problem) {
  problem_ = absl::StrCat("byte ", offset_, ", where record ", next_, " should be: ", base::View(problem));
  return Found::kBroken;
}

SegmentReader::Found SegmentReader::Next(LogRecord* record) {
  const uint64_t left = bytes_.size() - offset_;
  if (left == 0) return Found::kEnd;
  RecordBytes header;
  if (left < sizeof header) return Broken("the file ends within a record's header");
  std::memcpy(&header, bytes_.data() + offset_, sizeof header);
  if (header.crc != header.ComputeCrc() || header.zero != 0)
    return Broken("the checksum of the record's header is wrong");
  if (header.index != next_) return Broken(absl::StrCat("the record says that it is number ", header.index));
  const uint64_t padded = uint64_t{header.body_bytes} + RecordPadding(header.body_bytes);
  if (left - sizeof header < padded) return Broken("the file ends within the record");
  const char* const body = bytes_.data() + offset_ + sizeof header;
  constexpr char kZeros[8] = {};
  if (header.body_crc != base::Crc32c(body, padded) ||
      std::memcmp(body + header.body_bytes, kZeros, padded - header.body_bytes) != 0)
    return Broken("the record's checksum is wrong");
  *record = {header.index, header.durable, {body, header.body_bytes}};
  offset_ += sizeof header + padded;
  ++next_;
  return Found::kRecord;
}

}  // namespace regatta::log
