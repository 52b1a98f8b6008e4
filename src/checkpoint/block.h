// The block: the unit of checksums in a checkpoint's data files (docs/format/checkpoint.md).
// A block is a 16-byte header and a payload, a multiple of 8 bytes long, so that keys and floats are read in place.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/crc32c.h"

namespace regatta::checkpoint {

static_assert(std::endian::native == std::endian::little, "checkpoints are read and written in place, little-endian");

inline constexpr uint32_t kCheckpointVersion = 1;
inline constexpr char kDataMagic[] = "RGTASAVE";  // 8 bytes
inline constexpr uint64_t kDataHeaderBytes = 16;
inline constexpr uint64_t kBlockBytes = 16 << 10;  // the payload aimed at; one row at least
inline constexpr uint32_t kMaxRowFloats = 1 << 20;

struct BlockHeader {
  uint32_t payload_bytes = 0;
  uint32_t items = 0;  // rows, floats or bytes
  uint32_t payload_crc = 0;
  uint32_t header_crc = 0;  // of the 12 bytes before it

  uint32_t ComputeCrc() const { return base::Crc32c(this, 12); }
  // The checksum of an extent or file with this header added. Without header_crc: a CRC over bytes and their own CRC is
  // the same for all bytes.
  uint32_t AddTo(uint32_t crc) const { return base::Crc32c(this, 12, crc); }
};
static_assert(sizeof(BlockHeader) == 16);

constexpr uint64_t RoundUp8(uint64_t n) { return (n + 7) & ~uint64_t{7}; }
constexpr uint64_t RowBytes(uint64_t row_width) { return 8 + 4 * row_width; }
constexpr uint64_t RowsPerBlock(uint64_t row_width) {
  return RowBytes(row_width) >= kBlockBytes ? 1 : kBlockBytes / RowBytes(row_width);
}
inline constexpr uint64_t kFloatsPerBlock = kBlockBytes / 4;

// The 16 bytes that open data file number `index`.
inline std::string DataHeader(uint32_t index) {
  std::string header(kDataHeaderBytes, '\0');
  std::memcpy(header.data(), kDataMagic, 8);
  std::memcpy(header.data() + 8, &kCheckpointVersion, 4);
  std::memcpy(header.data() + 12, &index, 4);
  return header;
}

}  // namespace regatta::checkpoint
