// Rows in memory by key, in 1024 shards over one arena. The unit is the batch: Visit walks its keys in blocks, with
// the index lines and rows of later blocks on their way while a block is worked on.
// Thread-safety: everything but Clear's caller may be concurrent with everything, but no walk that makes rows may be
// under way during BeginSnapshot; a row is visited by one thread at a time, because that happens under its shard's
// lock.
// Invariants: locks are taken in ascending order of shards; a row's memory never moves; a created row is given to its
// visitor before anyone else sees it, also when the walk ends with an error.
//
// Epochs. Every snapshot begins a new epoch. A walk that makes rows (Missing::kCreate: it is going to write what it
// visits) puts the present epoch into the meta words of its rows while a snapshot is in progress, and at all times when
// changes are tracked. With `now` the present epoch and `saved` that of the last completed snapshot, the invariants are
//   during a snapshot: epoch of a row == now  <=>  the row was written since the snapshot began. Unless its writer has
//     passed the shard, its old bytes are then in the shard's chain of OldRows, or it was created since;
//   changes tracked: epoch of a row >= saved  <=>  the row was written since the last completed snapshot began.
// The byte holds 255 epochs. The snapshot after the 255th starts a new numbering (now = 2, saved = 1): every shard is
// marked to be renumbered (changed rows 1, others 0) when a walk or the writer next locks it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/key.h"
#include "base/mutex.h"
#include "base/status.h"
#include "table/store/arena.h"
#include "table/store/old_rows.h"
#include "table/store/row_slab.h"
#include "table/store/shard_index.h"
#include "table/store/shard_lock.h"

namespace regatta::table {

enum class Missing : uint8_t { kNull, kCreate };  // a key without a row: its pointer is null, or the row is made

// Some consecutive keys of a batch and their rows.
struct RowBlock {
  size_t first = 0;              // index of rows[0]'s key in the batch
  std::span<float* const> rows;  // null: missing, or not wanted
  uint64_t created = 0;          // bit i: rows[i] was made by this visit and is uninitialised
};

// What a walk does with rows: called a block at a time, never a row.
class RowVisitor {
 public:
  static constexpr int kBlock = 32;  // keys of a block at most
  virtual ~RowVisitor() = default;
  // Bit i: key first + i is to be looked up. Called before the block's rows are.
  virtual uint64_t Wanted(size_t first, size_t count) = 0;
  virtual void Visit(const RowBlock& block) = 0;
};

struct WalkOptions {
  Missing missing = Missing::kNull;
  uint64_t touched_bytes = 0;  // of a row, from its begin: what the visitor reads
};

enum class Marks : uint8_t { kOff, kOn };  // does a walk put the present epoch into the meta words of its rows?
enum class Tracking : uint8_t { kOff, kOn };
enum class Which : uint8_t { kAll, kChanged };  // rows of a snapshot: kChanged since the last completed snapshot began
enum class SnapshotEnd : uint8_t { kComplete, kAbandoned };  // kComplete: what the writer saw is safe

class MemoryStore {
 public:
  // Rows of `row_bytes`. `capacity` as Arena::Create takes it.
  static absl::StatusOr<std::unique_ptr<MemoryStore>> Create(uint64_t row_bytes,
                                                             ShardIndex::Growth growth = ShardIndex::Growth::kSpread,
                                                             uint64_t capacity = Arena::kMaxCapacity);

  // Keys come grouped by shard, shards ascending; INVALID_ARGUMENT names the first that is out of order. After an
  // error the keys before the one at fault have been visited.
  absl::Status Walk(std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor);

  // fn(key, row) for every row of a shard, under its lock.
  template <typename Fn>
  void ForEachRow(uint32_t shard, Fn&& fn) const {
    Shard& s = shards_[shard];
    s.lock.lock();
    s.index.ForEach([&](base::Key key, uint32_t handle, uint32_t) { fn(key, RowAt(handle)); });
    s.lock.unlock();
  }

  // The snapshot: all rows as they are during this call, in which no walk that makes rows may be under way; takes time
  // by shards, not by rows. Afterwards such walks keep the old bytes of what they write, in `bound` bytes at most, and
  // wait at that bound for the writer. FAILED_PRECONDITION where there is a snapshot already.
  absl::Status BeginSnapshot(uint64_t bound);
  // Rows that the visit below would show; OK as often as wanted before it.
  absl::StatusOr<uint64_t> SnapshotRows(uint32_t shard, Which which);
  // fn(key, row) for every row of the shard as of the snapshot, under its lock; afterwards the shard keeps nothing any
  // more and cannot be visited again. kChanged needs tracking, and a snapshot completed since it was switched on and
  // since Clear.
  template <typename Fn>
  absl::Status ForEachSnapshotRow(uint32_t shard, Which which, Fn&& fn) {
    RETURN_IF_ERROR(CheckSnapshot(which));
    Shard& s = shards_[shard];
    s.lock.lock();
    const absl::Status open = CheckOpen(shard);
    std::vector<uint32_t> passed;
    if (open.ok()) {
      Renumber(shard);
      const uint8_t now = now_.load(std::memory_order_relaxed);
      const uint8_t least = LeastEpoch(which);
      s.index.ForEach([&](base::Key key, uint32_t handle, uint32_t meta) {
        const uint8_t epoch = ShardIndex::EpochOf(meta);
        if (epoch != now && epoch >= least) fn(key, RowAt(handle));
      });
      for (uint32_t slot = snapshots_[shard].old; slot != OldRows::kNone; slot = old_rows_.At(slot).next) {
        OldRows::Row& old = old_rows_.At(slot);
        if (which == Which::kAll || old.changed) fn(old.key, const_cast<const float*>(old.values()));
        passed.push_back(slot);
      }
      snapshots_[shard].Pass();
    }
    s.lock.unlock();
    old_rows_.Give(passed);
    return open;
  }
  // Ends the snapshot; who waits at its bound goes on. kComplete wants every shard with rows visited
  // (FAILED_PRECONDITION, and the snapshot is abandoned, otherwise): from then on rows count as changed when they were
  // written since this snapshot.
  absl::Status EndSnapshot(SnapshotEnd end);
  // Off at first. On, every walk that makes rows marks them as changed.
  void TrackChanges(Tracking tracking);
  uint64_t old_row_bytes() const { return old_rows_.bytes(); }      // that the snapshot in progress keeps now
  uint64_t walks_that_wait() const { return old_rows_.waiting(); }  // at the snapshot's bound

  uint64_t rows() const;
  uint64_t ShardRows(uint32_t shard) const { return shards_[shard].index.size(); }
  uint64_t memory_bytes() const;
  // Drops the rows of shards [begin, end); waits for walks to leave each shard. Their memory serves new rows of the
  // same shards; the system gets it back when no shard has rows. A snapshot in progress is lost: its visits give
  // ABORTED.
  void Clear(uint32_t begin = 0, uint32_t end = base::kVirtualShards);

 private:
  struct alignas(64) Shard {
    ShardLock lock;
    ShardIndex index;
    RowSlab slab;
  };
  // What a snapshot knows of a shard; guarded by the shard's lock. Apart from Shard, which fills a cache line.
  struct SnapshotShard {
    bool open = false;      // a snapshot is in progress, and its writer has not passed
    uint16_t renumber = 0;  // not 0: rows still have epochs of the old numbering; those from this epoch on are changed
    uint32_t created = 0;   // rows since the snapshot
    uint32_t old = OldRows::kNone;  // the chain
    void Pass() {
      open = false;
      created = 0;
      old = OldRows::kNone;
    }
  };
  enum class SnapshotPhase : uint8_t { kNone, kOpen, kLost };  // kLost: the table was cleared
  template <Missing kMissing, Marks kMarks>
  class Walker;

  MemoryStore(std::unique_ptr<Arena> arena, uint64_t block_bytes, ShardIndex::Growth growth);

  const float* RowAt(uint32_t handle) const { return reinterpret_cast<const float*>(arena_->At(handle)); }
  absl::Status WalkMarked(std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor);
  uint8_t LeastEpoch(Which which) const { return which == Which::kAll ? 0 : saved_.load(std::memory_order_relaxed); }
  // Whether such rows can be told now.
  absl::Status CheckSnapshot(Which which) const;
  // The shard's lock is held.
  absl::Status CheckOpen(uint32_t shard) const;
  void Renumber(uint32_t shard);

  const std::unique_ptr<Arena> arena_;
  const uint64_t block_bytes_;
  const std::unique_ptr<Shard[]> shards_;
  const std::unique_ptr<SnapshotShard[]> snapshots_;
  OldRows old_rows_;

  // Written under snapshot_mu_, read by walks at their begin.
  std::atomic<bool> marking_{false};  // a snapshot is in progress, or changes are tracked
  std::atomic<uint8_t> now_{1};
  std::atomic<uint8_t> saved_{1};

  mutable base::Mutex snapshot_mu_;  // before the shards' locks
  SnapshotPhase snapshot_ ABSL_GUARDED_BY(snapshot_mu_) = SnapshotPhase::kNone;
  Tracking tracking_ ABSL_GUARDED_BY(snapshot_mu_) = Tracking::kOff;
  bool changes_known_ ABSL_GUARDED_BY(snapshot_mu_) = false;
};

}  // namespace regatta::table
