// Any bytes as a segment: refused, or records that read as they would be written.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "log/log_segment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta::log;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<SegmentReader> reader = SegmentReader::Open(bytes);
  if (!reader.ok()) return 0;
  if (FormatSegmentHeader(reader->header()) != bytes.substr(0, SegmentReader::kHeaderBytes)) std::abort();
  LogRecord record;
  uint64_t begin = reader->offset();
  while (reader->Next(&record) == SegmentReader::Found::kRecord) {
    const std::string header = FormatRecordHeader(record.index, record.durable, {&record.body, 1});
    if (bytes.substr(begin, header.size()) != header) std::abort();
    begin = reader->offset();
  }
  return 0;
}
