// Rows in memory by key, in 1024 shards over one arena. The unit is the batch: Visit walks its keys in blocks, with
// the index lines and rows of later blocks on their way while a block is worked on.
// Thread-safety: everything but Clear's caller may be concurrent with everything; a row is visited by one thread at a
// time, because the visit happens under its shard's lock.
// Invariants: locks are taken in ascending order of shards; a row's memory never moves; a born row is given to its
// visitor before anyone else sees it, also when the walk ends with an error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/key.h"
#include "base/status.h"
#include "table/store/arena.h"
#include "table/store/row_slab.h"
#include "table/store/shard_index.h"
#include "table/store/shard_lock.h"

namespace regatta::table {

enum class Missing : uint8_t { kNull, kCreate };  // a key without a row: its pointer is null, or the row is made

// Some consecutive keys of a batch and their rows.
struct RowBlock {
  size_t first = 0;              // index of rows[0]'s key in the batch
  std::span<float* const> rows;  // null: missing, or not wanted
  uint64_t born = 0;             // bit i: rows[i] was made by this visit and is uninitialised
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

class MemoryStore {
 public:
  // Rows of `row_bytes`. `capacity` as Arena::Create takes it.
  static absl::StatusOr<std::unique_ptr<MemoryStore>> Create(uint64_t row_bytes,
                                                             uint64_t capacity = Arena::kMaxCapacity);

  // Keys come grouped by shard, shards ascending; INVALID_ARGUMENT names the first that is out of order. After an
  // error the keys before the one at fault have been visited.
  absl::Status Walk(std::span<const base::Key> keys, const WalkOptions& options, RowVisitor& visitor);

  // fn(key, row) for every row of a shard, under its lock.
  template <typename Fn>
  void ForEachRow(uint32_t shard, Fn&& fn) const {
    Shard& s = shards_[shard];
    s.lock.lock();
    s.index.ForEach(
        [&](base::Key key, uint32_t handle) { fn(key, reinterpret_cast<const float*>(arena_->At(handle))); });
    s.lock.unlock();
  }

  uint64_t rows() const;
  uint64_t ShardRows(uint32_t shard) const { return shards_[shard].index.size(); }
  uint64_t memory_bytes() const;
  // Every row is gone and its memory given back; waits for walks to leave each shard.
  void Clear();

 private:
  struct alignas(64) Shard {
    ShardLock lock;
    ShardIndex index;
    RowSlab slab;
  };
  template <Missing kMissing>
  class Walker;

  MemoryStore(std::unique_ptr<Arena> arena, uint64_t block_bytes);

  const std::unique_ptr<Arena> arena_;
  const uint64_t block_bytes_;
  const std::unique_ptr<Shard[]> shards_;
};

}  // namespace regatta::table
