// The memory of one table: a reserved range of addresses that is committed as it fills, on huge pages, with a buddy
// allocator inside. Row chunks and index arrays come from the same range, so what a grown index leaves behind is used
// for rows, and a 32-bit handle (offset / 16) names every row.
// Thread-safety: Allocate, Free and allocated_bytes are concurrent; Reset needs that nobody uses the memory.
// Invariants: a block is a power of two of at least 1 KiB, aligned to its size; offset 0 is never given out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::table {

class Arena {
 public:
  static constexpr uint64_t kGranule = 16;
  static constexpr uint64_t kMaxCapacity = kGranule << 32;  // as far as a handle reaches
  static constexpr uint64_t kMinBlock = 1024;

  // `capacity` is a multiple of 2 MiB, at most kMaxCapacity. RESOURCE_EXHAUSTED when the addresses cannot be reserved.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(uint64_t capacity = kMaxCapacity);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The size of the block that serves `bytes`.
  static uint64_t BlockSize(uint64_t bytes);
  // Uninitialised memory of BlockSize(bytes); RESOURCE_EXHAUSTED when the range or the machine's memory is full.
  absl::StatusOr<std::byte*> Allocate(uint64_t bytes);
  // `bytes` as it was given to Allocate.
  void Free(std::byte* block, uint64_t bytes);
  // Every block is free again, and their memory is the system's.
  void Reset();

  uint32_t HandleOf(const void* p) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(static_cast<const std::byte*>(p) - base_) / kGranule);
  }
  std::byte* At(uint32_t handle) const { return base_ + static_cast<uint64_t>(handle) * kGranule; }

  uint64_t allocated_bytes() const;

 private:
  static constexpr int kMinBits = 10;
  static constexpr int kOrders = 27;  // 1 KiB … 64 GiB

  // Links of a free block, in its first bytes; units of 1 KiB, 0 = none.
  struct FreeBlock {
    uint32_t next;
    uint32_t previous;
  };

  Arena(std::byte* reserved, uint64_t reserved_bytes, std::byte* base, uint64_t capacity, uint8_t* free_order);

  FreeBlock& Links(uint32_t unit) const {
    return *reinterpret_cast<FreeBlock*>(base_ + (static_cast<uint64_t>(unit) << kMinBits));
  }
  void PushFree(uint32_t unit, int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveFree(uint32_t unit, int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(uint32_t unit, int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t TakeFree(int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<uint32_t> TakeFresh(int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Commit(uint64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  std::byte* const reserved_;
  const uint64_t reserved_bytes_;
  std::byte* const base_;  // on a huge page's boundary
  const uint64_t capacity_;
  uint8_t* const free_order_;  // of each unit: order + 1 where a free block begins, else 0

  mutable base::Mutex mu_;
  std::array<uint32_t, kOrders> free_ ABSL_GUARDED_BY(mu_){};  // heads, in units
  uint64_t frontier_ ABSL_GUARDED_BY(mu_) = kMinBlock;         // memory from here on was never given out
  uint64_t committed_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t allocated_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace regatta::table
