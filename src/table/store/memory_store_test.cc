#include "table/store/memory_store.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/grouped_keys.h"
#include "base/random.h"

namespace regatta::table {
namespace {

// Writes a row's key into it, and remembers what it was shown.
class Recorder final : public RowVisitor {
 public:
  explicit Recorder(const std::vector<base::Key>& keys) : keys_(keys) {}
  uint64_t Wanted(size_t, size_t) override { return ~uint64_t{0}; }
  void Visit(const RowBlock& block) override {
    for (size_t i = 0; i < block.rows.size(); ++i) {
      EXPECT_EQ(block.first + i, visited++);
      const base::Key key = keys_[block.first + i];
      if (block.rows[i] == nullptr) {
        ++missing;
      } else if (block.created >> i & 1) {
        ++created;
        reinterpret_cast<base::Key*>(block.rows[i])[0] = key;
      } else {
        EXPECT_EQ(reinterpret_cast<base::Key*>(block.rows[i])[0], key);
      }
    }
  }
  size_t visited = 0, created = 0, missing = 0;

 private:
  const std::vector<base::Key>& keys_;
};

std::vector<base::Key> RandomKeys(size_t n, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<base::Key> keys(n);
  for (base::Key& key : keys) key = rng();
  return base::GroupedKeys(keys).keys();
}

TEST(MemoryStore, RowsAreCreatedOnceAndFoundAfterwards) {
  auto store = MemoryStore::Create(24);
  ASSERT_TRUE(store.ok());
  for (const size_t n : {0, 1, 31, 32, 33, 64, 65, 1000, 30'000}) {
    const std::vector<base::Key> keys = RandomKeys(n, n + 1);
    Recorder before(keys), create(keys), after(keys);
    ASSERT_TRUE((*store)->Walk(keys, {Missing::kNull, 24}, before).ok());
    EXPECT_EQ(before.missing, n);
    ASSERT_TRUE((*store)->Walk(keys, {Missing::kCreate, 24}, create).ok());
    EXPECT_EQ(create.created, n);
    EXPECT_EQ(create.visited, n);
    ASSERT_TRUE((*store)->Walk(keys, {Missing::kCreate, 24}, after).ok());
    EXPECT_EQ(after.created + after.missing, 0u);
    EXPECT_EQ(after.visited, n);
  }
}

// Keys of one shard that have an upper or a lower half in common: half a match is none.
TEST(MemoryStore, KeysThatShareHalfTheirBitsAreTold) {
  std::vector<base::Key> there, absent;
  for (uint64_t i = 0; i < 1 << 20; ++i) {
    const uint64_t many = i >> 4, few = i & 15;
    for (const base::Key key : {few << 32 | many, many << 32 | few})
      if (base::ShardOf(key) == 7) (many % 2 == 0 ? there : absent).push_back(key);
  }
  there = base::GroupedKeys(there).keys();
  absent = base::GroupedKeys(absent).keys();
  ASSERT_GT(there.size(), 800u);
  ASSERT_GT(absent.size(), 800u);
  auto store = MemoryStore::Create(24);
  ASSERT_TRUE(store.ok());
  Recorder create(there), found(there), missed(absent);
  ASSERT_TRUE((*store)->Walk(there, {Missing::kCreate, 24}, create).ok());
  EXPECT_EQ(create.created, there.size());
  ASSERT_TRUE((*store)->Walk(there, {Missing::kNull, 24}, found).ok());
  EXPECT_EQ(found.missing, 0u);
  ASSERT_TRUE((*store)->Walk(absent, {Missing::kNull, 24}, missed).ok());
  EXPECT_EQ(missed.missing, absent.size());
}

TEST(MemoryStore, RowsOfAMultipleOf64BytesBeginOnACacheLine) {
  auto store = MemoryStore::Create(128);
  ASSERT_TRUE(store.ok());
  const std::vector<base::Key> keys = RandomKeys(5000, 3);
  Recorder recorder(keys);
  ASSERT_TRUE((*store)->Walk(keys, {Missing::kCreate, 128}, recorder).ok());
  std::set<uintptr_t> seen;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    (*store)->ForEachRow(shard, [&](base::Key, const float* row) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(row) % 64, 0u);
      EXPECT_TRUE(seen.insert(reinterpret_cast<uintptr_t>(row)).second);
    });
  }
  EXPECT_EQ(seen.size(), 5000u);
}

TEST(MemoryStore, AFullStoreSaysSoAndKeepsEveryRowItShowed) {
  auto store = MemoryStore::Create(512, ShardIndex::Growth::kSpread, uint64_t{4} << 20);
  ASSERT_TRUE(store.ok());
  const std::vector<base::Key> keys = RandomKeys(30'000, 4);
  Recorder recorder(keys);
  const absl::Status full = (*store)->Walk(keys, {Missing::kCreate, 512}, recorder);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_GT(recorder.created, 1000u);
  EXPECT_EQ(recorder.created, recorder.visited);
  EXPECT_EQ((*store)->rows(), recorder.created);
  Recorder again(keys);  // no lock was left behind, and the rows hold what their visitor wrote
  ASSERT_TRUE((*store)->Walk(keys, {Missing::kNull, 512}, again).ok());
  EXPECT_EQ(again.missing, keys.size() - recorder.created);
}

TEST(MemoryStore, WideRowsFitToo) {
  auto store = MemoryStore::Create(100'000);
  ASSERT_TRUE(store.ok());
  const std::vector<base::Key> keys = RandomKeys(40, 5);
  Recorder create(keys), after(keys);
  ASSERT_TRUE((*store)->Walk(keys, {Missing::kCreate, 100'000}, create).ok());
  ASSERT_TRUE((*store)->Walk(keys, {Missing::kNull, 100'000}, after).ok());
  EXPECT_EQ(after.missing, 0u);
}

TEST(RowSlab, AFreedRowIsTheNextOneGiven) {
  auto arena = Arena::Create(uint64_t{4} << 20);
  ASSERT_TRUE(arena.ok());
  RowSlab slab;
  std::vector<float*> rows;
  for (int i = 0; i < 100; ++i) rows.push_back(*slab.Allocate(**arena, 48));
  slab.Free(**arena, rows[7]);
  slab.Free(**arena, rows[50]);
  EXPECT_EQ(*slab.Allocate(**arena, 48), rows[50]);
  EXPECT_EQ(*slab.Allocate(**arena, 48), rows[7]);
  EXPECT_EQ(std::set<float*>(rows.begin(), rows.end()).size(), 100u);
}

}  // namespace
}  // namespace regatta::table
