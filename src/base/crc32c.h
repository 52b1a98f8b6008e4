// CRC-32C (Castagnoli), as in iSCSI and RocksDB. Uses SSE4.2, and multiplications without carries for long inputs,
// where the CPU has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace regatta::base {

// The CRC of `data` appended to bytes whose CRC is `crc` (0 for none).
uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0);

}  // namespace regatta::base
