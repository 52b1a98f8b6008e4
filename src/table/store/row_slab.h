// The rows of one shard: blocks of one size carved from chunks of the table's arena, with a free list through the
// blocks that were given back. Chunks grow with the shard (1 KiB … 16 KiB for rows of ordinary size), so 1024 shards
// of a small table stay small.
// Thread-safety: none; the shard's lock guards it.
// Invariant: a block is a multiple of 16 bytes; one of a multiple of 64 begins on a cache line.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "table/store/arena.h"

namespace regatta::table {

class RowSlab {
 public:
  static constexpr uint64_t kLargestChunk = 16 * 1024;

  static constexpr uint64_t BlockBytes(uint64_t row_bytes) {
    return std::max<uint64_t>((row_bytes + Arena::kGranule - 1) / Arena::kGranule * Arena::kGranule, Arena::kGranule);
  }

  // Uninitialised memory for one row.
  absl::StatusOr<float*> Allocate(Arena& arena, uint64_t block_bytes) {
    if (free_ != 0) {
      std::byte* block = arena.At(free_);
      free_ = *reinterpret_cast<uint32_t*>(block);
      return reinterpret_cast<float*>(block);
    }
    if (static_cast<uint64_t>(end_ - next_) < block_bytes) RETURN_IF_ERROR(AddChunk(arena, block_bytes));
    std::byte* block = next_;
    next_ += block_bytes;
    return reinterpret_cast<float*>(block);
  }

  void Free(Arena& arena, float* row) {
    *reinterpret_cast<uint32_t*>(row) = free_;
    free_ = arena.HandleOf(row);
  }

  // Forgets the chunks; Arena::Reset takes their memory back.
  void Reset() { *this = RowSlab(); }

 private:
  absl::Status AddChunk(Arena& arena, uint64_t block_bytes) {
    // An eighth of what the shard has: at most that much stands empty.
    const uint64_t wanted = std::bit_floor(std::clamp(chunk_bytes_ / 8, Arena::kMinBlock, kLargestChunk));
    const uint64_t size =
        Arena::BlockSize(std::max(wanted, 4 * block_bytes > kLargestChunk ? 4 * block_bytes : block_bytes));
    ASSIGN_OR_RETURN(next_, arena.Allocate(size));
    end_ = next_ + size;
    chunk_bytes_ += size;
    return absl::OkStatus();
  }

  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  uint64_t chunk_bytes_ = 0;
  uint32_t free_ = 0;  // handle of the first free block
};

}  // namespace regatta::table
