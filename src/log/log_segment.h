// The bytes of a push log's segment: a header, then records with checksums of their own (docs/format/log.md).
// Thread-safety: plain values; a SegmentReader belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace regatta::log {

inline constexpr uint64_t kMaxRecordBytes = 80 << 20;

struct SegmentHeader {
  uint64_t log = 0;    // the log it belongs to
  uint64_t first = 0;  // index of its first record
};

struct LogRecord {
  uint64_t index = 0;
  uint64_t durable = 0;  // records up to this one were on the disk when it was written
  std::string_view body;
};

// What opens a segment, and what opens a record whose body is the concatenation of `parts`.
std::string FormatSegmentHeader(const SegmentHeader& header);
std::string FormatRecordHeader(uint64_t index, uint64_t durable, std::span<const std::string_view> parts);
// Zero bytes behind a body of this length.
constexpr uint64_t RecordPadding(uint64_t body_bytes) { return (8 - body_bytes % 8) % 8; }

class SegmentReader {
 public:
  // `bytes` outlives the reader. DATA_LOSS where they do not begin as a segment does.
  static absl::StatusOr<SegmentReader> Open(std::string_view bytes);
  static constexpr uint64_t kHeaderBytes = 32;

  const SegmentHeader& header() const { return header_; }
  enum class Found : uint8_t {
    kRecord,
    kEnd,     // the segment is whole
    kBroken,  // what is at offset() is no record; problem() says why
  };
  // Records come with ascending indexes, without a gap.
  Found Next(LogRecord* record);
  uint64_t offset() const { return offset_; }  // behind the last whole record
  uint64_t next_index() const { return next_; }
  const std::string& problem() const { return problem_; }

 private:
  SegmentReader(std::string_view bytes, const SegmentHeader& header)
      : bytes_(bytes), header_(header), offset_(kHeaderBytes), next_(header.first) {}
  Found Broken(std::string_view problem);

  std::string_view bytes_;
  SegmentHeader header_;
  uint64_t offset_;
  uint64_t next_;
  std::string problem_;
};

}  // namespace regatta::log
