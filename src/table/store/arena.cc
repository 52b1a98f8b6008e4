#include "table/store/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace regatta::table {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kCommitStep = uint64_t{32} << 20;

std::byte* Reserve(uint64_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

int OrderOf(uint64_t block) { return std::countr_zero(block) - std::countr_zero(Arena::kMinBlock); }

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(uint64_t capacity) {
  if (capacity == 0 || capacity % kHugePage != 0 || capacity > kMaxCapacity) {
    return absl::InvalidArgumentError(
        absl::StrCat("arena: capacity must be a multiple of 2 MiB up to ", kMaxCapacity, ", got ", capacity));
  }
  const uint64_t reserved_bytes = capacity + kHugePage;
  std::byte* reserved = Reserve(reserved_bytes, PROT_NONE);
  std::byte* orders = reserved == nullptr ? nullptr : Reserve(capacity >> kMinBits, PROT_READ | PROT_WRITE);
  if (orders == nullptr) {
    const std::string reason = std::strerror(errno);
    if (reserved != nullptr) munmap(reserved, reserved_bytes);
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot reserve ", reserved_bytes >> 20, " MiB of address space for a table (", reason,
                     "): no memory is used by it yet; raise the limit on virtual memory (ulimit -v unlimited)"));
  }
  const uint64_t misaligned = reinterpret_cast<uintptr_t>(reserved) % kHugePage;
  std::byte* base = reserved + (misaligned == 0 ? 0 : kHugePage - misaligned);
  madvise(base, capacity, MADV_HUGEPAGE);  // a request: kernels without huge pages refuse it
  return std::unique_ptr<Arena>(
      new Arena(reserved, reserved_bytes, base, capacity, reinterpret_cast<uint8_t*>(orders)));
}

Arena::Arena(std::byte* reserved, uint64_t reserved_bytes, std::byte* base, uint64_t capacity, uint8_t* free_order)
    : reserved_(reserved), reserved_bytes_(reserved_bytes), base_(base), capacity_(capacity), free_order_(free_order) {}

Arena::~Arena() {
  munmap(reserved_, reserved_bytes_);
  munmap(free_order_, capacity_ >> kMinBits);
}

uint64_t Arena::BlockSize(uint64_t bytes) { return std::bit_ceil(std::max(bytes, kMinBlock)); }

absl::StatusOr<std::byte*> Arena::Allocate(uint64_t bytes) {
  if (bytes > capacity_ / 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a table cannot give one block of ", bytes, " bytes: all of it may hold ", capacity_));
  }
  const uint64_t block = BlockSize(bytes);
  base::MutexLock lock(mu_);
  uint32_t unit = TakeFree(OrderOf(block));
  if (unit == 0) {
    ASSIGN_OR_RETURN(unit, TakeFresh(OrderOf(block)));
  }
  allocated_ += block;
  return base_ + (static_cast<uint64_t>(unit) << kMinBits);
}

void Arena::Free(std::byte* block, uint64_t bytes) {
  const uint64_t size = BlockSize(bytes);
  base::MutexLock lock(mu_);
  allocated_ -= size;
  Release(static_cast<uint32_t>(static_cast<uint64_t>(block - base_) >> kMinBits), OrderOf(size));
}

void Arena::Reset() {
  base::MutexLock lock(mu_);
  madvise(base_, committed_, MADV_DONTNEED);
  std::memset(free_order_, 0, frontier_ >> kMinBits);
  free_.fill(0);
  frontier_ = kMinBlock;
  allocated_ = 0;
}

uint64_t Arena::allocated_bytes() const {
  base::MutexLock lock(mu_);
  return allocated_;
}

void Arena::PushFree(uint32_t unit, int order) {
  free_order_[unit] = static_cast<uint8_t>(order + 1);
  Links(unit) = {free_[order], 0};
  if (free_[order] != 0) Links(free_[order]).previous = unit;
  free_[order] = unit;
}

void Arena::RemoveFree(uint32_t unit, int order) {
  free_order_[unit] = 0;
  const FreeBlock links = Links(unit);
  (links.previous == 0 ? free_[order] : Links(links.previous).next) = links.next;
  if (links.next != 0) Links(links.next).previous = links.previous;
}

// Joins the block with its free buddies. Blocks beyond the frontier are never marked free, so joining ends there.
void Arena::Release(uint32_t unit, int order) {
  while (order + 1 < kOrders) {
    const uint32_t buddy = unit ^ (uint32_t{1} << order);
    if (free_order_[buddy] != order + 1) break;
    RemoveFree(buddy, order);
    unit = std::min(unit, buddy);
    ++order;
  }
  PushFree(unit, order);
}

// The smallest free block that serves, its rest split off; 0 when there is none.
uint32_t Arena::TakeFree(int order) {
  int found = order;
  while (found < kOrders && free_[found] == 0) ++found;
  if (found == kOrders) return 0;
  const uint32_t unit = free_[found];
  RemoveFree(unit, found);
  while (found > order) {
    --found;
    PushFree(unit + (uint32_t{1} << found), found);
  }
  return unit;
}

// Moves the frontier; the gap that alignment leaves becomes free blocks.
absl::StatusOr<uint32_t> Arena::TakeFresh(int order) {
  const uint64_t block = kMinBlock << order;
  const uint64_t begin = (frontier_ + block - 1) & ~(block - 1);
  if (begin + block > capacity_) {
    return absl::ResourceExhaustedError(absl::StrCat("the table is full: its ", capacity_ >> 20, " MiB are in use"));
  }
  RETURN_IF_ERROR(Commit(begin + block));
  while (frontier_ < begin) {
    const uint64_t piece = frontier_ & -frontier_;
    const uint32_t unit = static_cast<uint32_t>(frontier_ >> kMinBits);
    frontier_ += piece;
    Release(unit, OrderOf(piece));
  }
  frontier_ = begin + block;
  return static_cast<uint32_t>(begin >> kMinBits);
}

absl::Status Arena::Commit(uint64_t end) {
  if (end <= committed_) return absl::OkStatus();
  const uint64_t target = std::min(capacity_, (end + kCommitStep - 1) / kCommitStep * kCommitStep);
  if (mprotect(base_ + committed_, target - committed_, PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("the system refuses ", (target - committed_) >> 20,
                                                     " MiB more for a table of ", committed_ >> 20,
                                                     " MiB: ", std::strerror(errno)));
  }
  committed_ = target;
  return absl::OkStatus();
}

}  // namespace regatta::table
