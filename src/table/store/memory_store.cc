#include "table/store/memory_store.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"

namespace regatta::table {
namespace {

constexpr int kBlock = RowVisitor::kBlock;
constexpr uint64_t kLine = 64;
constexpr uint64_t kPrefetchedLines = 8;  // of a row; the hardware sees the rest of a longer one coming
constexpr uint32_t kNoShard = base::kVirtualShards;

}  // namespace

// One walk. A block of keys passes three stages, each a block behind the one before: Hint (hash, prefetch the index
// line), Find (lock the shard, look up or make the row, prefetch it), Finish (the visitor; unlock).
template <Missing kMissing>
class MemoryStore::Walker {
 public:
  Walker(MemoryStore& store, std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor)
      : arena_(*store.arena_),
        shards_(store.shards_.get()),
        block_bytes_(store.block_bytes_),
        keys_(keys),
        lines_(std::min((options.touched_bytes + kLine - 1) / kLine, kPrefetchedLines)),
        visitor_(visitor) {}

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
    uint64_t born = 0;
    std::array<uint64_t, kBlock> hash;
    std::array<float*, kBlock> rows;
  };

  Block& At(size_t b) { return ring_[b % ring_.size()]; }

  void Begin(size_t b) {
    Block& block = At(b);
    block.first = b * kBlock;
    block.count = static_cast<int>(std::min<size_t>(kBlock, keys_.size() - block.first));
    block.born = 0;
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
    if (const uint32_t handle = shards_[shard].index.Find(hash, key); handle != 0) [[likely]] {
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
    if (absl::Status s = shard.index.Insert(arena_, hash, key, arena_.HandleOf(*row)); !s.ok()) {
      shard.slab.Free(arena_, *row);
      return Fail(block, i, s);
    }
    block.rows[i] = *row;
    block.born |= uint64_t{1} << i;
    return true;
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
    if (block.count > 0) {
      visitor_.Visit({block.first, {block.rows.data(), static_cast<size_t>(block.count)}, block.born});
    }
    Unlock(b + 1 < blocks && At(b + 1).count > 0 ? base::ShardOfHash(At(b + 1).hash[0]) : kNoShard);
  }

  void Lock(uint32_t shard) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    shards_[shard].lock.lock();
    held_[held_end_++ % held_.size()] = static_cast<uint16_t>(shard);
    last_locked_ = shard;
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
  }

  Arena& arena_;
  Shard* const shards_;
  const uint64_t block_bytes_;
  const std::span<const base::Key> keys_;
  const uint64_t lines_;
  RowVisitor& visitor_;

  absl::Status status_;
  size_t failed_ = ~size_t{0} - 1;  // the block in which the walk ends
  uint32_t last_hinted_ = 0;
  uint32_t last_locked_ = kNoShard;
  uint32_t held_begin_ = 0;
  uint32_t held_end_ = 0;
  std::array<uint16_t, std::bit_ceil(2u * kBlock)> held_;  // oldest first: the shards of at most two blocks
  std::array<Block, 3> ring_;
};

absl::StatusOr<std::unique_ptr<MemoryStore>> MemoryStore::Create(uint64_t row_bytes, uint64_t capacity) {
  ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena, Arena::Create(capacity));
  return std::unique_ptr<MemoryStore>(new MemoryStore(std::move(arena), RowSlab::BlockBytes(row_bytes)));
}

MemoryStore::MemoryStore(std::unique_ptr<Arena> arena, uint64_t block_bytes)
    : arena_(std::move(arena)), block_bytes_(block_bytes), shards_(new Shard[base::kVirtualShards]) {
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) shards_[s].index.SetShard(s);
}

absl::Status MemoryStore::Walk(std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor) {
  return options.missing == Missing::kNull ? Walker<Missing::kNull>(*this, keys, options, visitor).Run()
                                           : Walker<Missing::kCreate>(*this, keys, options, visitor).Run();
}

uint64_t MemoryStore::rows() const {
  uint64_t total = 0;
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) total += shards_[s].index.size();
  return total;
}

uint64_t MemoryStore::memory_bytes() const { return arena_->allocated_bytes() + sizeof(Shard) * base::kVirtualShards; }

void MemoryStore::Clear() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) shards_[s].lock.lock();
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) {
    shards_[s].index.Reset();
    shards_[s].slab.Reset();
  }
  arena_->Reset();
  for (uint32_t s = 0; s < base::kVirtualShards; ++s) shards_[s].lock.unlock();
}

}  // namespace regatta::table
