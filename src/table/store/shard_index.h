// The index of one shard: key → row handle, in buckets of one cache line each (four keys, their handles, their meta
// words), probed from the bucket that the hash names.
// Thread-safety: the shard's lock guards everything but Prefetch, which only hints and may read a stale array.
// Invariants: handle 0 is an empty entry (every key is legal); the entries of a bucket fill from the front, and a
// bucket that is not full ends a probe.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/key.h"
#include "base/status.h"
#include "table/store/arena.h"

namespace regatta::table {

class ShardIndex {
 public:
  static constexpr int kSlots = 4;

  // The meta word has a byte for the row's size class (accessors whose rows grow; 0 for the plain accessor) and above
  // it one for the epoch in which the row was last written (memory_store.h says what it means).
  struct alignas(64) Bucket {
    base::Key key[kSlots];
    uint32_t handle[kSlots];
    uint32_t meta[kSlots];
  };

  // Shards of a table that learns grow at different loads (0.60 … 0.85 by shard), so that a growing table does not
  // rehash all of its shards within a few batches. Those of a table that is loaded and read grow when they are full.
  enum class Growth : uint8_t { kSpread, kLate };
  void SetShard(uint32_t shard, Growth growth) { load_ = growth == Growth::kLate ? kLateLoad : LoadOf(shard); }

  // Brings the line that a Find of `hash` reads first.
  void Prefetch(uint64_t hash) const {
    const Bucket* buckets = buckets_.load(std::memory_order_relaxed);
    __builtin_prefetch(buckets + (hash & mask_.load(std::memory_order_relaxed)));
  }

  static uint8_t EpochOf(uint32_t meta) { return static_cast<uint8_t>(meta >> 8); }
  static uint32_t WithEpoch(uint32_t meta, uint8_t epoch) { return (meta & ~uint32_t{0xff00}) | uint32_t{epoch} << 8; }

  // 0 when the key has no row.
  uint32_t Find(uint64_t hash, base::Key key) const { return Locate(hash, key).handle; }

  // Handle (0 when the key has no row) and meta word, which may be written where there is a row.
  struct Entry {
    uint32_t handle;
    uint32_t* meta;
  };
  Entry FindEntry(uint64_t hash, base::Key key) {
    const Place place = Locate(hash, key);
    return {place.handle, &const_cast<Bucket*>(place.bucket)->meta[place.slot]};
  }

  // The key must not be there. Grows first where needed.
  absl::Status Insert(Arena& arena, uint64_t hash, base::Key key, uint32_t handle, uint32_t meta) {
    if (size_ >= limit_) RETURN_IF_ERROR(Grow(arena));
    Put(buckets_.load(std::memory_order_relaxed), mask_.load(std::memory_order_relaxed), hash, key, handle, meta);
    size_.store(size_ + 1, std::memory_order_relaxed);
    return absl::OkStatus();
  }

  // fn(key, handle, meta) for every row; meta may be written.
  template <typename Fn>
  void ForEach(Fn&& fn) {
    if (limit_ == 0) return;
    Bucket* buckets = buckets_.load(std::memory_order_relaxed);
    for (uint32_t b = 0; b <= mask_.load(std::memory_order_relaxed); ++b) {
      for (int slot = 0; slot < kSlots && buckets[b].handle[slot] != 0; ++slot) {
        fn(buckets[b].key[slot], buckets[b].handle[slot], buckets[b].meta[slot]);
      }
    }
  }

  // Concurrent.
  uint32_t size() const { return size_.load(std::memory_order_relaxed); }

  // Gives the array back to the arena.
  void Clear(Arena& arena) {
    if (limit_ != 0)
      arena.Free(reinterpret_cast<std::byte*>(buckets_.load(std::memory_order_relaxed)),
                 (uint64_t{mask_} + 1) * sizeof(Bucket));
    Reset();
  }

  // Forgets the array; Arena::Reset takes its memory back.
  void Reset() {
    buckets_.store(&empty_, std::memory_order_relaxed);
    mask_.store(0, std::memory_order_relaxed);
    size_.store(0, std::memory_order_relaxed);
    limit_ = 0;
  }

 private:
  struct Place {
    const Bucket* bucket;
    int slot;
    uint32_t handle;  // 0 when the key has no row
  };
  Place Locate(uint64_t hash, base::Key key) const {
    const Bucket* buckets = buckets_.load(std::memory_order_relaxed);
    const uint32_t mask = mask_.load(std::memory_order_relaxed);
    for (uint32_t b = static_cast<uint32_t>(hash) & mask;; b = (b + 1) & mask) {
      const Bucket& bucket = buckets[b];
      const unsigned match = Match(bucket, key);
      if (match != 0) [[likely]] {
        // An empty entry may show key 0, but only behind the true one: then its handle says 0 = not here.
        const int slot = __builtin_ctz(match) / kMatchBits;
        return {&bucket, slot, bucket.handle[slot]};
      }
      if (bucket.handle[kSlots - 1] == 0) return {&bucket, kSlots - 1, 0};
    }
  }

  // Bit kMatchBits * i is set where key i is `key`; no other bit is. Without a branch, which compilers like to make of
  // four comparisons: which of them holds cannot be predicted.
  static constexpr int kMatchBits = 4;
  static unsigned Match(const Bucket& bucket, base::Key key) {
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi64x(static_cast<int64_t>(key));
    const auto* keys = reinterpret_cast<const __m128i*>(bucket.key);
    const __m128i halves = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(keys), wanted),
                                           _mm_cmpeq_epi32(_mm_load_si128(keys + 1), wanted));
    const __m128i both = _mm_and_si128(halves, _mm_srli_epi32(halves, 16));
    return static_cast<unsigned>(_mm_movemask_epi8(both)) & 0x1111;
#else
    return static_cast<unsigned>(bucket.key[0] == key) | static_cast<unsigned>(bucket.key[1] == key) << 4 |
           static_cast<unsigned>(bucket.key[2] == key) << 8 | static_cast<unsigned>(bucket.key[3] == key) << 12;
#endif
  }

  static constexpr float kLateLoad = 0.90f;
  static constexpr float LoadOf(uint32_t shard) {
    uint32_t reversed = 0;  // neighbours far apart
    for (int bit = 0; bit < base::kVirtualShardBits; ++bit) reversed = reversed << 1 | ((shard >> bit) & 1);
    return 0.60f + 0.25f * static_cast<float>(reversed) / base::kVirtualShards;
  }

  static void Put(Bucket* buckets, uint32_t mask, uint64_t hash, base::Key key, uint32_t handle, uint32_t meta) {
    uint32_t b = static_cast<uint32_t>(hash) & mask;
    while (buckets[b].handle[kSlots - 1] != 0) b = (b + 1) & mask;
    int slot = 0;
    while (buckets[b].handle[slot] != 0) ++slot;
    buckets[b].key[slot] = key;
    buckets[b].handle[slot] = handle;
    buckets[b].meta[slot] = meta;
  }

  absl::Status Grow(Arena& arena) {
    const uint64_t old_bytes = limit_ == 0 ? 0 : (uint64_t{mask_} + 1) * sizeof(Bucket);
    const uint64_t bytes = limit_ == 0 ? Arena::kMinBlock : 2 * old_bytes;
    const uint64_t count = bytes / sizeof(Bucket);
    if (count > uint64_t{1} << 31) return absl::ResourceExhaustedError("a shard of the table holds too many keys");
    ASSIGN_OR_RETURN(std::byte * memory, arena.Allocate(bytes));
    std::memset(memory, 0, bytes);
    Bucket* grown = reinterpret_cast<Bucket*>(memory);
    Bucket* old = buckets_.load(std::memory_order_relaxed);
    const uint32_t mask = static_cast<uint32_t>(count - 1);
    for (uint64_t b = 0; b < old_bytes / sizeof(Bucket); ++b) {
      for (int slot = 0; slot < kSlots && old[b].handle[slot] != 0; ++slot) {
        Put(grown, mask, base::KeyHash(old[b].key[slot]), old[b].key[slot], old[b].handle[slot], old[b].meta[slot]);
      }
    }
    buckets_.store(grown, std::memory_order_relaxed);
    mask_.store(mask, std::memory_order_relaxed);
    limit_ = static_cast<uint32_t>(load_ * static_cast<float>(count * kSlots));
    if (old_bytes != 0) arena.Free(reinterpret_cast<std::byte*>(old), old_bytes);
    return absl::OkStatus();
  }

  static inline Bucket empty_{};  // what a shard without rows looks into; never written

  std::atomic<Bucket*> buckets_{&empty_};
  std::atomic<uint32_t> mask_{0};
  std::atomic<uint32_t> size_{0};
  uint32_t limit_ = 0;  // rows before the next growth; 0 = no array yet
  float load_ = LoadOf(0);
};

}  // namespace regatta::table
