#include "table/store/memory_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace regatta::table {
namespace {

constexpr int kBlock = RowVisitor::kBlock;
constexpr uint64_t kLine = 64;
constexpr uint64_t kPrefetchedLines = 8;  // of a row; the hardware sees the rest of a longer one coming
constexpr uint32_t kNoShard = base::kVirtualShards;
constexpr uint8_t kLastEpoch = 255;

// A part of a batch, shown under its place in the batch.
class Shifted final : public RowVisitor {
 public:
  Shifted(RowVisitor& visitor, size_t by) : visitor_(visitor), by_(by) {}
  uint64_t Wanted(size_t first, size_t count) override { return visitor_.Wanted(first + by_, count); }
  void Visit(const RowBlock& block) override { visitor_.Visit({block.first + by_, block.rows, block.created}); }

 private:
  RowVisitor& visitor_;
  const size_t by_;
};

}  // namespace

// One walk. A block of keys passes three stages, each a block behind the one before: Hint (hash, prefetch the index
// line), Find (lock the shard, look up or make the row, prefetch it), Finish (the visitor; unlock). With Marks::kOn
// rows get the present epoch in Find, and Finish keeps the bytes of those that a snapshot still needs before the
// visitor sees them.
template <Missing kMissing, Marks kMarks>
class MemoryStore::Walker {
 public:
  Walker(MemoryStore& store, std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor)
      : store_(store),
        arena_(*store.arena_),
        shards_(store.shards_.get()),
        block_bytes_(store.block_bytes_),
        keys_(keys),
        lines_(std::min((options.touched_bytes + kLine - 1) / kLine, kPrefetchedLines)),
        last_byte_(block_bytes_ % kLine == 0
                       ? 0
                       : std::clamp<uint64_t>(options.touched_bytes, 1, kPrefetchedLines * kLine) - 1),
        visitor_(visitor) {}

  // Slots for old rows, used from the back; `previous` is the shard that the batch's keys before these ended with.
  void KeepIn(std::vector<uint32_t>& slots, uint32_t previous) {
    slots_ = &slots;
    last_hinted_ = previous;
  }

  absl::Status Run() {
    size_t blocks = (keys_.size() + kBlock - 1) / kBlock;
    for (size_t b = 0; b < blocks + 2; ++b) {
      if (b < blocks) Begin(b);
      Advance(b < blocks ? &At(b) : nullptr, b >= 1 && b - 1 < blocks ? &At(b - 1) : nullptr);
      if (!status_.ok()) [[unlikely]]
        blocks = std::min(blocks, failed_ + 1);
      if (b >= 2) Finish(b - 2, blocks);
    }
    return status_;
  }

 private:
  struct Block {
    size_t first = 0;
    int count = 0;
    uint64_t wanted = 0;
    uint64_t created = 0;
    uint64_t kept = 0;     // bit i: the old bytes of row i are needed
    uint64_t changed = 0;  // bit i: and it had changed since the last completed snapshot
    std::array<uint64_t, kBlock> hash;
    std::array<float*, kBlock> rows;
  };

  Block& At(size_t b) { return ring_[b % ring_.size()]; }

  void Begin(size_t b) {
    Block& block = At(b);
    block.first = b * kBlock;
    block.count = static_cast<int>(std::min<size_t>(kBlock, keys_.size() - block.first));
    block.created = 0;
    if constexpr (kMarks == Marks::kOn) block.kept = block.changed = 0;
    block.wanted = visitor_.Wanted(block.first, static_cast<size_t>(block.count));
  }

  // Hints one block and finds the one before it, a key of each in turn, so that requests to memory are spread evenly.
  void Advance(Block* hinted, Block* found) {
    const int hints = hinted == nullptr ? 0 : hinted->count;
    const int finds = found == nullptr ? 0 : found->count;
    const int both = std::min(hints, finds);
    bool hinting = true;
    bool finding = true;
    int i = 0;
    for (; i < both && hinting && finding; ++i) {
      hinting = Hint(*hinted, i);
      finding = Find(*found, i);
    }
    for (int h = i; h < hints && hinting; ++h) hinting = Hint(*hinted, h);
    for (int f = i; f < finds && finding; ++f) finding = Find(*found, f);
  }

  // False for a key out of order: its block and the walk end in front of it.
  [[gnu::always_inline]] bool Hint(Block& block, int i) {
    const uint64_t hash = base::KeyHash(keys_[block.first + static_cast<size_t>(i)]);
    const uint32_t shard = base::ShardOfHash(hash);
    block.hash[i] = hash;
    shards_[shard].index.Prefetch(hash);
    if (shard < last_hinted_) [[unlikely]]
      return OutOfOrder(block, i);
    last_hinted_ = shard;
    return true;
  }

  // False when a row cannot be made: its block and the walk end in front of it.
  [[gnu::always_inline]] bool Find(Block& block, int i) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    block.rows[i] = nullptr;
    if ((block.wanted >> i & 1) == 0) [[unlikely]]
      return true;
    const uint64_t hash = block.hash[i];
    const uint32_t shard = base::ShardOfHash(hash);
    if (shard != last_locked_) Lock(shard);
    const base::Key key = keys_[block.first + static_cast<size_t>(i)];
    uint32_t handle;
    if constexpr (kMarks == Marks::kOn) {
      const ShardIndex::Entry entry = shards_[shard].index.FindEntry(hash, key);
      handle = entry.handle;
      if (handle != 0 && ShardIndex::EpochOf(*entry.meta) != now_) Mark(block, i, *entry.meta);
    } else {
      handle = shards_[shard].index.Find(hash, key);
    }
    if (handle != 0) [[likely]] {
      block.rows[i] = reinterpret_cast<float*>(arena_.At(handle));
      PrefetchRow(block.rows[i]);
      return true;
    }
    return kMissing == Missing::kNull || Make(block, i, key);
  }

  [[gnu::noinline]] bool OutOfOrder(Block& block, int i) {
    return Fail(
        block, i,
        absl::InvalidArgumentError(absl::StrCat(
            "key ", keys_[block.first + static_cast<size_t>(i)], " of virtual shard ", base::ShardOfHash(block.hash[i]),
            " comes after keys of shard ", last_hinted_, ": the keys of a batch must be grouped by shard")));
  }

  [[gnu::noinline]] bool Make(Block& block, int i, base::Key key) {
    const uint64_t hash = block.hash[i];
    Shard& shard = shards_[base::ShardOfHash(hash)];
    const absl::StatusOr<float*> row = shard.slab.Allocate(arena_, block_bytes_);
    if (!row.ok()) return Fail(block, i, row.status());
    const uint32_t meta = kMarks == Marks::kOn ? ShardIndex::WithEpoch(0, now_) : 0;
    if (absl::Status s = shard.index.Insert(arena_, hash, key, arena_.HandleOf(*row), meta); !s.ok()) {
      shard.slab.Free(arena_, *row);
      return Fail(block, i, s);
    }
    if constexpr (kMarks == Marks::kOn) {
      if (SnapshotShard& snapshot = store_.snapshots_[base::ShardOfHash(hash)]; snapshot.open) ++snapshot.created;
    }
    block.rows[i] = *row;
    block.created |= uint64_t{1} << i;
    return true;
  }

  // A row's first write in this epoch.
  void Mark(Block& block, int i, uint32_t& meta) {
    const uint64_t bit = uint64_t{1} << i;
    if (store_.snapshots_[base::ShardOfHash(block.hash[i])].open) {
      block.kept |= bit;
      if (ShardIndex::EpochOf(meta) >= saved_) block.changed |= bit;
    }
    meta = ShardIndex::WithEpoch(meta, now_);
  }

  [[gnu::noinline]] void Keep(const Block& block) {
    for (uint64_t kept = block.kept; kept != 0; kept &= kept - 1) {
      const int i = __builtin_ctzll(kept);
      SnapshotShard& snapshot = store_.snapshots_[base::ShardOfHash(block.hash[i])];
      const uint32_t slot = slots_->back();
      slots_->pop_back();
      OldRows::Row& old = store_.old_rows_.At(slot);
      old.key = keys_[block.first + static_cast<size_t>(i)];
      old.next = snapshot.old;
      old.changed = (block.changed >> i & 1) != 0;
      std::memcpy(old.values(), block.rows[i], block_bytes_);
      snapshot.old = slot;
    }
  }

  // The earliest failure counts: the blocks before it are finished, its own up to it.
  bool Fail(Block& block, int count, const absl::Status& status) {
    block.count = count;
    if (status_.ok() || block.first / kBlock < failed_) {
      status_ = status;
      failed_ = block.first / kBlock;
    }
    return false;
  }

  void Finish(size_t b, size_t blocks) {
    Block& block = At(b);
    if constexpr (kMarks == Marks::kOn) {
      if (block.kept != 0) Keep(block);
    }
    if (block.count > 0) {
      visitor_.Visit({block.first, {block.rows.data(), static_cast<size_t>(block.count)}, block.created});
    }
    Unlock(b + 1 < blocks && At(b + 1).count > 0 ? base::ShardOfHash(At(b + 1).hash[0]) : kNoShard);
  }

  void Lock(uint32_t shard) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    shards_[shard].lock.lock();
    held_[held_end_++ % held_.size()] = static_cast<uint16_t>(shard);
    last_locked_ = shard;
    if constexpr (kMarks == Marks::kOn) store_.Renumber(shard);
  }

  // Releases the shards below `shard`.
  void Unlock(uint32_t shard) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (held_begin_ != held_end_ && held_[held_begin_ % held_.size()] < shard) {
      shards_[held_[held_begin_++ % held_.size()]].lock.unlock();
    }
    if (held_begin_ == held_end_) last_locked_ = kNoShard;
  }

  [[gnu::always_inline]] void PrefetchRow(const float* row) const {
    constexpr int kWrite = kMissing == Missing::kCreate ? 1 : 0;
    const char* p = reinterpret_cast<const char*>(row);
    __builtin_prefetch(p, kWrite);
    for (uint64_t line = 1; line < lines_; ++line) __builtin_prefetch(p + line * kLine, kWrite);
    if (last_byte_ != 0) __builtin_prefetch(p + last_byte_, kWrite);
  }

  MemoryStore& store_;
  Arena& arena_;
  Shard* const shards_;
  const uint64_t block_bytes_;
  const std::span<const base::Key> keys_;
  const uint64_t lines_;
  const uint64_t last_byte_;  // where it may lie in a line more, because rows begin anywhere in theirs; 0 = never
  RowVisitor& visitor_;
  const uint8_t now_ = store_.now_.load(std::memory_order_relaxed);
  const uint8_t saved_ = store_.saved_.load(std::memory_order_relaxed);  // moves only when all shards were passed
  std::vector<uint32_t>* slots_ = nullptr;

  absl::Status status_;
  size_t failed_ = ~size_t{0} - 1;  // the block in which the walk ends
  uint32_t last_hinted_ = 0;
  uint32_t last_locked_ = kNoShard;
  uint32_t held_begin_ = 0;
  uint32_t held_end_ = 0;
  std::array<uint16_t, std::bit_ceil(2u * kBlock)> held_;  // oldest first: the shards of at most two blocks
  std::array<Block, 3> ring_;
};

absl::StatusOr<std::unique_ptr<MemoryStore>> MemoryStore::Create(uint64_t row_bytes, ShardIndex::Growth growth,
                                                                 uint64_t capacity) {
  ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena, Arena::Create(capacity));
  return std::unique_ptr<MemoryStore>(new MemoryStore(std::move(arena), RowSlab::BlockBytes(row_bytes), growth));
}

MemoryStore::MemoryStore(std::unique_ptr<Arena> arena, uint64_t block_bytes, ShardIndex::Growth growth)
    : arena_(std::move(arena)),
      block_bytes_(block_bytes),
      shards_(new Shard[base::kVirtualShards]),
      snapshots_(new SnapshotShard[base::kVirtualShards]) {
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) shards_[s].index.SetShard(s, growth);
}

absl::Status MemoryStore::Walk(std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor) {
  if (options.missing == Missing::kNull)
    return Walker<Missing::kNull, Marks::kOff>(*this, keys, options, visitor).Run();
  if (marking_.load(std::memory_order_relaxed)) [[unlikely]]
    return WalkMarked(keys, options, visitor);
  return Walker<Missing::kCreate, Marks::kOff>(*this, keys, options, visitor).Run();
}

// As many keys at a time as there are slots for all their rows; all at once where there is no snapshot.
absl::Status MemoryStore::WalkMarked(std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor) {
  std::vector<uint32_t> slots;
  for (size_t first = 0; first < keys.size();) {
    size_t count = old_rows_.Take(keys.size() - first, slots);
    if (count == 0) count = keys.size() - first;
    Shifted shifted(visitor, first);
    Walker<Missing::kCreate, Marks::kOn> walker(*this, keys.subspan(first, count), options, shifted);
    walker.KeepIn(slots, first == 0 ? 0 : base::ShardOf(keys[first - 1]));
    const absl::Status status = walker.Run();
    old_rows_.Give(slots);
    if (!status.ok()) return status;
    first += count;
  }
  return absl::OkStatus();
}

absl::Status MemoryStore::BeginSnapshot(uint64_t bound) {
  base::MutexLock lock(snapshot_mu_);
  if (snapshot_ != SnapshotPhase::kNone)
    return absl::FailedPreconditionError("a snapshot is in progress; only one can be");
  RETURN_IF_ERROR(old_rows_.Open(block_bytes_, bound));
  const bool renumber = now_.load(std::memory_order_relaxed) == kLastEpoch;
  const uint8_t saved = saved_.load(std::memory_order_relaxed);
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) {
    shards_[s].lock.lock();
    SnapshotShard& snapshot = snapshots_[s];
    if (renumber && snapshot.renumber == 0) {
      snapshot.renumber = saved;
    } else if (renumber && saved > 1) {
      snapshot.renumber = kLastEpoch + 1;  // a snapshot has completed meanwhile: nothing here has changed since
    }
    snapshot.open = true;
    shards_[s].lock.unlock();
  }
  if (renumber) saved_.store(1, std::memory_order_relaxed);
  now_.store(renumber ? 2 : static_cast<uint8_t>(now_.load(std::memory_order_relaxed) + 1), std::memory_order_relaxed);
  snapshot_ = SnapshotPhase::kOpen;
  marking_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemoryStore::SnapshotRows(uint32_t shard, Which which) {
  RETURN_IF_ERROR(CheckSnapshot(which));
  Shard& s = shards_[shard];
  s.lock.lock();
  const absl::Status open = CheckOpen(shard);
  uint64_t rows = 0;
  if (open.ok() && which == Which::kAll) rows = s.index.size() - snapshots_[shard].created;
  if (open.ok() && which == Which::kChanged) {
    Renumber(shard);
    const uint8_t now = now_.load(std::memory_order_relaxed);
    const uint8_t least = LeastEpoch(which);
    s.index.ForEach([&](base::Key, uint32_t, uint32_t meta) {
      const uint8_t epoch = ShardIndex::EpochOf(meta);
      rows += epoch != now && epoch >= least;
    });
    for (uint32_t slot = snapshots_[shard].old; slot != OldRows::kNone; slot = old_rows_.At(slot).next) {
      rows += old_rows_.At(slot).changed;
    }
  }
  s.lock.unlock();
  if (!open.ok()) return open;
  return rows;
}

absl::Status MemoryStore::EndSnapshot(SnapshotEnd end) {
  base::MutexLock lock(snapshot_mu_);
  if (snapshot_ == SnapshotPhase::kNone) return absl::FailedPreconditionError("no snapshot is in progress");
  uint32_t unvisited = 0;
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) {
    shards_[s].lock.lock();
    unvisited += snapshots_[s].open && shards_[s].index.size() > 0;
    snapshots_[s].Pass();
    shards_[s].lock.unlock();
  }
  old_rows_.Close();
  const bool lost = snapshot_ == SnapshotPhase::kLost;
  snapshot_ = SnapshotPhase::kNone;
  marking_.store(tracking_ == Tracking::kOn, std::memory_order_relaxed);
  if (end == SnapshotEnd::kAbandoned) return absl::OkStatus();
  if (lost) return absl::AbortedError("the table was cleared during the snapshot");
  if (unvisited > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the snapshot is not complete: ", unvisited, " shards with rows were not visited"));
  }
  saved_.store(now_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  changes_known_ = tracking_ == Tracking::kOn;
  return absl::OkStatus();
}

void MemoryStore::TrackChanges(Tracking tracking) {
  base::MutexLock lock(snapshot_mu_);
  tracking_ = tracking;
  if (tracking == Tracking::kOff) changes_known_ = false;
  marking_.store(tracking == Tracking::kOn || snapshot_ != SnapshotPhase::kNone, std::memory_order_relaxed);
}

absl::Status MemoryStore::CheckSnapshot(Which which) const {
  base::MutexLock lock(snapshot_mu_);
  if (snapshot_ == SnapshotPhase::kNone) return absl::FailedPreconditionError("no snapshot is in progress");
  if (snapshot_ == SnapshotPhase::kLost) return absl::AbortedError("the table was cleared during the snapshot");
  if (which == Which::kChanged && !changes_known_) {
    return absl::FailedPreconditionError(
        "which rows have changed is not known: changes were not tracked, or the table was cleared, since the last "
        "snapshot");
  }
  return absl::OkStatus();
}

absl::Status MemoryStore::CheckOpen(uint32_t shard) const {
  if (snapshots_[shard].open) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the snapshot has been visited in shard ", shard, ", or has ended"));
}

void MemoryStore::Renumber(uint32_t shard) {
  const uint16_t changed = snapshots_[shard].renumber;
  if (changed == 0) [[likely]]
    return;
  shards_[shard].index.ForEach([&](base::Key, uint32_t, uint32_t& meta) {
    meta = ShardIndex::WithEpoch(meta, ShardIndex::EpochOf(meta) >= changed ? 1 : 0);
  });
  snapshots_[shard].renumber = 0;
}

uint64_t MemoryStore::rows() const {
  uint64_t total = 0;
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) total += shards_[s].index.size();
  return total;
}

uint64_t MemoryStore::memory_bytes() const {
  return arena_->allocated_bytes() + old_rows_.bytes() + (sizeof(Shard) + sizeof(SnapshotShard)) * base::kVirtualShards;
}

void MemoryStore::Clear(uint32_t begin, uint32_t end) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  base::MutexLock lock(snapshot_mu_);
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) shards_[s].lock.lock();
  bool empty = true;
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) {
    snapshots_[s] = SnapshotShard();
    empty &= (s >= begin && s < end) || shards_[s].index.size() == 0;
  }
  for (uint32_t s = begin; s < end && !empty; ++s) {
    Shard& shard = shards_[s];
    shard.index.ForEach([&](base::Key, uint32_t handle, uint32_t) {
      shard.slab.Free(*arena_, reinterpret_cast<float*>(arena_->At(handle)));
    });
    shard.index.Clear(*arena_);
  }
  for (uint32_t s = 0; s < base::kVirtualShards && empty; ++s) {
    shards_[s].index.Reset();
    shards_[s].slab.Reset();
  }
  if (empty) arena_->Reset();
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) shards_[s].lock.unlock();
  old_rows_.Close();
  if (snapshot_ == SnapshotPhase::kOpen) snapshot_ = SnapshotPhase::kLost;
  changes_known_ = false;
}

}  // namespace regatta::table
