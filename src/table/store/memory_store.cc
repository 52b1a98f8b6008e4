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

}  // namespace

// One walk. A block of keys passes three stages, each a block behind the one before: Hint (hash, prefetch the index
// line), Find (lock the shard, look up or make the row, prefetch it), Finish (the visitor; unlock).
class MemoryStore::Walker {
 public:
  Walker(MemoryStore& store, std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor)
      : arena_(*store.arena_),
        shards_(store.shards_.get()),
        block_bytes_(store.block_bytes_),
        keys_(keys),
        options_(options),
        lines_(std::min((options.touched_bytes + kLine - 1) / kLine, kPrefetchedLines)),
        visitor_(visitor) {}

  absl::Status Run() {
    size_t blocks = (keys_.size() + kBlock - 1) / kBlock;
    for (size_t b = 0; b < blocks + 2; ++b) {
      if (b < blocks && !Hint(b)) blocks = b + 1;
      if (b >= 1 && b - 1 < blocks && !Find(b - 1)) blocks = b;
      if (b >= 2) Finish(b - 2, b - 1 < blocks);
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

  // False at the first key that is out of order: the walk ends in front of it.
  bool Hint(size_t b) {
    Block& block = At(b);
    block.first = b * kBlock;
    block.count = static_cast<int>(std::min<size_t>(kBlock, keys_.size() - block.first));
    const base::Key* keys = keys_.data() + block.first;
    for (int i = 0; i < block.count; ++i) {
      const uint64_t hash = base::KeyHash(keys[i]);
      const uint32_t shard = base::ShardOfHash(hash);
      if (shard < last_shard_) [[unlikely]] {
        status_ = absl::InvalidArgumentError(absl::StrCat("key ", keys[i], " of virtual shard ", shard,
                                                          " comes after keys of shard ", last_shard_,
                                                          ": the keys of a batch must be grouped by shard"));
        block.count = i;
        break;
      }
      last_shard_ = shard;
      block.hash[i] = hash;
      shards_[shard].index.Prefetch(hash);
    }
    block.wanted = visitor_.Wanted(block.first, block.count);
    return status_.ok();
  }

  // False when no row could be made: the block ends in front of it.
  bool Find(size_t b) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Block& block = At(b);
    block.born = 0;
    const base::Key* keys = keys_.data() + block.first;
    for (int i = 0; i < block.count; ++i) {
      block.rows[i] = nullptr;
      if ((block.wanted >> i & 1) == 0) [[unlikely]]
        continue;
      const uint64_t hash = block.hash[i];
      Shard& shard = Lock(base::ShardOfHash(hash));
      if (const uint32_t handle = shard.index.Find(hash, keys[i]); handle != 0) [[likely]] {
        block.rows[i] = reinterpret_cast<float*>(arena_.At(handle));
        PrefetchRow(block.rows[i]);
      } else if (options_.missing == Missing::kCreate) {
        absl::StatusOr<float*> row = Make(shard, hash, keys[i]);
        if (!row.ok()) {
          if (status_.ok()) status_ = row.status();
          block.count = i;
          return false;
        }
        block.rows[i] = *row;
        block.born |= uint64_t{1} << i;
      }
    }
    return true;
  }

  void Finish(size_t b, bool more) {
    Block& block = At(b);
    if (block.count > 0)
      visitor_.Visit({block.first, {block.rows.data(), static_cast<size_t>(block.count)}, block.born});
    Unlock(more && At(b + 1).count > 0 ? base::ShardOfHash(At(b + 1).hash[0]) : base::kVirtualShards);
  }

  Shard& Lock(uint32_t shard) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (held_begin_ == held_end_ || held_[(held_end_ - 1) % held_.size()] != shard) {
      shards_[shard].lock.lock();
      held_[held_end_++ % held_.size()] = static_cast<uint16_t>(shard);
    }
    return shards_[shard];
  }

  // Releases the shards below `shard`.
  void Unlock(uint32_t shard) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (held_begin_ != held_end_ && held_[held_begin_ % held_.size()] < shard) {
      shards_[held_[held_begin_++ % held_.size()]].lock.unlock();
    }
  }

  absl::StatusOr<float*> Make(Shard& shard, uint64_t hash, base::Key key) {
    ASSIGN_OR_RETURN(float* row, shard.slab.Allocate(arena_, block_bytes_));
    if (absl::Status s = shard.index.Insert(arena_, hash, key, arena_.HandleOf(row)); !s.ok()) {
      shard.slab.Free(arena_, row);
      return s;
    }
    return row;
  }

  void PrefetchRow(const float* row) const {
    const char* p = reinterpret_cast<const char*>(row);
    if (options_.missing == Missing::kCreate) {
      for (uint64_t line = 0; line < lines_; ++line) __builtin_prefetch(p + line * kLine, 1);
    } else {
      for (uint64_t line = 0; line < lines_; ++line) __builtin_prefetch(p + line * kLine, 0);
    }
  }

  Arena& arena_;
  Shard* const shards_;
  const uint64_t block_bytes_;
  const std::span<const base::Key> keys_;
  const WalkOptions options_;
  const uint64_t lines_;
  RowVisitor& visitor_;

  absl::Status status_;
  uint32_t last_shard_ = 0;
  std::array<Block, 3> ring_;
  // Locks held, oldest first: those of at most two blocks.
  std::array<uint16_t, std::bit_ceil(2u * kBlock + 1)> held_;
  uint32_t held_begin_ = 0;
  uint32_t held_end_ = 0;
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
  return Walker(*this, keys, options, visitor).Run();
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
