#include "table/store/old_rows.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace regatta::table {
namespace {

constexpr uint64_t kMostTaken = 4096;  // slots at once: enough to make the lock cheap, little beside any bound
constexpr uint64_t kPopulated = uint64_t{1} << 20;

}  // namespace

absl::Status OldRows::Open(uint64_t row_bytes, uint64_t bound) {
  const uint64_t slot_bytes = SlotBytes(row_bytes);
  const uint64_t slots = std::min<uint64_t>(bound / slot_bytes, kNone);
  if (slots < kLeastSlots) {
    return absl::InvalidArgumentError(absl::StrCat("a snapshot needs room for ", kLeastSlots, " old rows, ",
                                                   kLeastSlots * slot_bytes, " bytes; it was given ", bound));
  }
  // Touched as it fills.
  const uint64_t bytes = slots * slot_bytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a snapshot cannot have ", bytes, " bytes of addresses: ", std::strerror(errno)));
  }
  base::MutexLock lock(mu_);
  base_ = static_cast<std::byte*>(memory);
  slot_bytes_ = slot_bytes;
  mapped_ = bytes;
  capacity_ = slots;
  open_ = true;
  return absl::OkStatus();
}

void OldRows::Close() {
  base::MutexLock lock(mu_);
  if (!open_) return;
  munmap(base_, mapped_);
  base_ = nullptr;
  open_ = false;
  fresh_ = taken_ = populated_ = 0;
  free_ = {};
  given_.NotifyAll();
}

size_t OldRows::Take(size_t wanted, std::vector<uint32_t>& slots) {
  slots.clear();
  base::MutexLock lock(mu_);
  if (!open_) return 0;
  const uint64_t count = std::min({uint64_t{wanted}, kMostTaken, capacity_ / 2});
  ++waiting_;
  while (open_ && capacity_ - taken_ < count) given_.Wait(mu_);
  --waiting_;
  if (!open_) return 0;
  const uint64_t used = std::min<uint64_t>(count, free_.size());
  slots.assign(free_.end() - static_cast<int64_t>(used), free_.end());
  free_.resize(free_.size() - used);
  while (slots.size() < count) slots.push_back(static_cast<uint32_t>(fresh_++));
  Populate();
  taken_ += count;
  return count;
}

// Has the system find memory a megabyte at a time, and not page by page under the shards' locks.
void OldRows::Populate() {
#ifdef MADV_POPULATE_WRITE
  while (populated_ < fresh_ * slot_bytes_) {
    const uint64_t bytes = std::min(kPopulated, mapped_ - populated_);
    madvise(base_ + populated_, bytes, MADV_POPULATE_WRITE);  // a hint: kernels before 5.14 know nothing of it
    populated_ += bytes;
  }
#endif
}

void OldRows::Give(std::span<const uint32_t> slots) {
  if (slots.empty()) return;
  base::MutexLock lock(mu_);
  if (!open_) return;
  free_.insert(free_.end(), slots.begin(), slots.end());
  taken_ -= slots.size();
  if (waiting_ > 0) given_.NotifyAll();
}

uint64_t OldRows::bytes() const {
  base::MutexLock lock(mu_);
  return taken_ * slot_bytes_;
}

uint64_t OldRows::waiting() const {
  base::MutexLock lock(mu_);
  return waiting_;
}

}  // namespace regatta::table
