// The bytes that rows had when a snapshot began, for the rows written since and not yet seen by the snapshot's writer:
// slots of one size in one range of addresses, so that their bound is a bound of memory. A walk takes the slots that it
// may need before it takes a lock, and waits there while there are none; the writer gives them back shard by shard.
// Thread-safety: concurrent; a slot belongs to who took it, then to the shard whose chain it is in.
// Invariant: who waits in Take holds neither slots nor shard locks, so the writer always gets on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/key.h"
#include "base/mutex.h"
#include "base/status.h"

namespace regatta::table {

class OldRows {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};  // ends a chain
  static constexpr uint64_t kLeastSlots = 64;

  struct Row {
    base::Key key;
    uint32_t next;  // slot of the chain's next row
    bool changed;   // between the last completed snapshot and this one
    float* values() { return reinterpret_cast<float*>(this + 1); }
  };

  OldRows() = default;
  ~OldRows() { Close(); }
  OldRows(const OldRows&) = delete;
  OldRows& operator=(const OldRows&) = delete;

  // Bytes that one row takes.
  static constexpr uint64_t SlotBytes(uint64_t row_bytes) { return (sizeof(Row) + row_bytes + 15) / 16 * 16; }

  // At most `bound` bytes from here on. INVALID_ARGUMENT where they hold fewer than kLeastSlots rows.
  absl::Status Open(uint64_t row_bytes, uint64_t bound);
  // Gives all memory back and wakes who waits. No slot may be read or written any more.
  void Close();

  // Takes min(wanted, some thousands) slots, waiting until there are so many; how many that was, 0 when closed.
  size_t Take(size_t wanted, std::vector<uint32_t>& slots);
  void Give(std::span<const uint32_t> slots);

  Row& At(uint32_t slot) const { return *reinterpret_cast<Row*>(base_ + slot * slot_bytes_); }
  uint64_t bytes() const;    // of the slots that are taken
  uint64_t waiting() const;  // walks that wait for slots

 private:
  void Populate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant between Open and Close.
  std::byte* base_ = nullptr;
  uint64_t slot_bytes_ = 0;

  mutable base::Mutex mu_;
  base::CondVar given_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t mapped_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t capacity_ ABSL_GUARDED_BY(mu_) = 0;   // slots
  uint64_t fresh_ ABSL_GUARDED_BY(mu_) = 0;      // slots from here on were never taken
  uint64_t populated_ ABSL_GUARDED_BY(mu_) = 0;  // bytes with memory behind them
  uint64_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t waiting_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::table
