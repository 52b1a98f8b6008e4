// The snapshot of a sparse table: what its writer sees is the table as it was when the snapshot began.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <map>
#include <numeric>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "base/grouped_keys.h"
#include "base/random.h"
#include "table/sparse_table.h"

namespace regatta::table {
namespace {

constexpr uint64_t kMuch = uint64_t{64} << 20;
constexpr int kSnapshotDim = 3;

using Rows = std::map<base::Key, std::vector<uint32_t>>;

std::unique_ptr<SparseTable> MakeSnapshotTable() {
  SparseTableConfig config;
  config.name = "embedding";
  config.dim = kSnapshotDim;
  config.rule.name = "std_adagrad";
  config.seed = 7;
  return SparseTable::Create(config).value();
}

absl::Status PushSame(SparseTable& table, const base::GroupedKeys& keys, float gradient = 1) {
  const std::vector<float> grads(keys.size() * kSnapshotDim, gradient);
  base::TableGrads push;
  push.keys = keys.view();
  push.grads = {grads.data(), kSnapshotDim, kSnapshotDim};
  return table.Push(push, {});
}

void PutRow(Rows& rows, base::Key key, std::span<const float> row) {
  std::vector<uint32_t> bits;
  for (const float f : row) bits.push_back(std::bit_cast<uint32_t>(f));
  EXPECT_TRUE(rows.emplace(key, std::move(bits)).second) << "key " << key << " twice";
}

Rows Live(const SparseTable& table) {
  Rows rows;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    table.ForEachRow(shard, [&](base::Key key, std::span<const float> row) { PutRow(rows, key, row); });
  }
  return rows;
}

absl::Status VisitShard(SparseTable& table, uint32_t shard, Which which, Rows& rows) {
  uint64_t visited = 0;
  const auto count = table.SnapshotRows(shard, which);
  const absl::Status status = table.ForEachSnapshotRow(shard, which, [&](base::Key key, std::span<const float> row) {
    PutRow(rows, key, row);
    ++visited;
  });
  EXPECT_TRUE(!status.ok() || *count == visited);
  return status;
}

Rows Snapshot(SparseTable& table, Which which = Which::kAll) {
  Rows rows;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    const absl::Status status = VisitShard(table, shard, which, rows);
    EXPECT_TRUE(status.ok()) << status;
  }
  return rows;
}

// Rows of `now` that `before` lacks or has with other bits.
Rows Difference(const Rows& now, const Rows& before) {
  Rows rows;
  for (const auto& [key, bits] : now) {
    const auto it = before.find(key);
    if (it == before.end() || it->second != bits) rows.emplace(key, bits);
  }
  return rows;
}

// Threads that write until told to stop; Pause lets nothing be under way.
class Writers {
 public:
  Writers(SparseTable& table, int threads) {
    for (int t = 0; t < threads; ++t) threads_.emplace_back([this, &table, t] { Run(table, t); });
  }
  ~Writers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  std::unique_lock<std::shared_mutex> Pause() {
    pausing_ = true;
    std::unique_lock lock(pause_);
    pausing_ = false;
    return lock;
  }
  uint64_t batches() const { return batches_; }

 private:
  // Keys of a set that grows: many are written again and again, some are created in every batch.
  void Run(SparseTable& table, int t) {
    base::Rng rng(static_cast<uint64_t>(t) + 1);
    for (uint64_t round = 0; !stop_; ++round) {
      std::vector<base::Key> keys;
      for (int i = 0; i < 300; ++i)
        keys.push_back(base::Mix64(rng.Below(3000 + std::min<uint64_t>(20 * round, 12'000))));
      const base::GroupedKeys grouped(keys);
      while (pausing_) std::this_thread::yield();  // the lock alone prefers who shares it
      std::shared_lock lock(pause_);
      if (round % 8 == 7) {
        const std::vector<float> row(static_cast<size_t>(table.row_width()), static_cast<float>(round));
        EXPECT_TRUE(table.Load(base::ShardOf(keys[0]), {keys.data(), 1}, row).ok());
      } else {
        EXPECT_TRUE(PushSame(table, grouped, static_cast<float>(rng.Uniform())).ok());
      }
      ++batches_;
    }
  }

  std::shared_mutex pause_;
  std::atomic<bool> pausing_{false};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> batches_{0};
  std::vector<std::thread> threads_;
};

std::vector<uint32_t> ShuffledShards(uint64_t seed) {
  std::vector<uint32_t> shards(base::kVirtualShards);
  std::iota(shards.begin(), shards.end(), 0);
  base::Rng rng(seed);
  for (size_t i = shards.size() - 1; i > 0; --i) std::swap(shards[i], shards[rng.Below(i + 1)]);
  return shards;
}

void SnapshotsUnderPushes(uint64_t bound) {
  auto table = MakeSnapshotTable();
  table->TrackChanges(Tracking::kOn);
  Rows last;
  Writers writers(*table, 4);
  for (uint64_t snapshot = 0; snapshot < 6; ++snapshot) {
    while (writers.batches() < 40 * snapshot + 20) std::this_thread::yield();
    Rows copy;
    {
      const auto paused = writers.Pause();
      copy = Live(*table);
      ASSERT_TRUE(table->BeginSnapshot(bound).ok());
    }
    const bool changed = snapshot % 2 == 1;
    Rows rows;
    const std::vector<uint32_t> shards = ShuffledShards(snapshot);
    for (size_t i = 0; i < shards.size(); ++i) {
      if (i == 500 || i == 1000) {  // with rows written, created and rehashed on both sides of the writer
        const uint64_t seen = writers.batches();
        while (writers.batches() < seen + 10 && table->writes_that_wait() < 4) std::this_thread::yield();
      }
      ASSERT_TRUE(VisitShard(*table, shards[i], changed ? Which::kChanged : Which::kAll, rows).ok());
    }
    EXPECT_LE(table->old_row_bytes(), bound);
    ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kComplete).ok());
    EXPECT_EQ(table->old_row_bytes(), 0u);
    if (changed) {
      Rows chained = last;  // what a base and this incremental give
      for (const auto& [key, bits] : rows) chained[key] = bits;
      EXPECT_EQ(chained, copy);
    } else {
      EXPECT_EQ(rows, copy);
    }
    last = copy;
  }
}

TEST(SparseSnapshot, IsTheTableAtItsBeginWhateverIsPushedMeanwhile) { SnapshotsUnderPushes(kMuch); }

TEST(SparseSnapshot, IsSoTooWhenPushesWaitAtItsBound) { SnapshotsUnderPushes(200 * 64); }

TEST(SparseSnapshot, KeepsAnOldRowOnceAndGivesItsMemoryBackShardByShard) {
  auto table = MakeSnapshotTable();
  std::vector<base::Key> some;
  for (base::Key key = 0; key < 2000; ++key) some.push_back(key);
  const base::GroupedKeys keys(some);
  ASSERT_TRUE(PushSame(*table, keys).ok());
  const Rows before = Live(*table);
  const uint64_t memory = table->memory_bytes();
  ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
  EXPECT_EQ(table->old_row_bytes(), 0u);
  ASSERT_TRUE(PushSame(*table, keys).ok());
  const uint64_t kept = table->old_row_bytes();
  EXPECT_EQ(kept, 2000 * OldRows::SlotBytes(static_cast<uint64_t>(table->row_width()) * sizeof(float) + 8));
  EXPECT_EQ(table->memory_bytes(), memory + kept);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(PushSame(*table, keys).ok());
  EXPECT_EQ(table->old_row_bytes(), kept) << "a row is kept once";
  ASSERT_TRUE(PushSame(*table, base::GroupedKeys({5000, 5001})).ok());
  EXPECT_EQ(table->old_row_bytes(), kept) << "a row that was not there takes nothing";
  Rows rows;
  uint64_t left = kept;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    const size_t seen = rows.size();
    ASSERT_TRUE(VisitShard(*table, shard, Which::kAll, rows).ok());
    left -= (rows.size() - seen) * kept / 2000;
    ASSERT_EQ(table->old_row_bytes(), left);
  }
  EXPECT_EQ(rows, before);
  EXPECT_EQ(left, 0u);
  ASSERT_TRUE(PushSame(*table, keys).ok());
  EXPECT_EQ(table->old_row_bytes(), 0u) << "a shard that was visited keeps nothing";
  ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kComplete).ok());
}

TEST(SparseSnapshot, AnAbandonedOneLeavesNothingBehind) {
  auto table = MakeSnapshotTable();
  table->TrackChanges(Tracking::kOn);
  const base::GroupedKeys some({1, 2, 3}), more({3, 4, 5, 6});
  ASSERT_TRUE(PushSame(*table, some).ok());
  ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
  const Rows first = Snapshot(*table);
  ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kComplete).ok());
  for (uint32_t visited : {0, 1, 512, 1024}) {
    ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
    ASSERT_TRUE(PushSame(*table, more).ok());
    Rows rows;
    for (uint32_t shard = 0; shard < visited; ++shard) ASSERT_TRUE(VisitShard(*table, shard, Which::kAll, rows).ok());
    ASSERT_TRUE(PushSame(*table, more).ok());
    ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kAbandoned).ok());
    EXPECT_EQ(table->old_row_bytes(), 0u);
  }
  const Rows copy = Live(*table);
  ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
  ASSERT_TRUE(PushSame(*table, some).ok());
  EXPECT_EQ(Snapshot(*table, Which::kChanged), Difference(copy, first))
      << "changes count from the last completed snapshot";
  ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kComplete).ok());
}

// A push that has to wait, and what lets it go on.
void WaitsUntil(const std::function<void(SparseTable&)>& free) {
  auto table = MakeSnapshotTable();
  std::vector<base::Key> some;
  for (base::Key key = 0; key < 1000; ++key) some.push_back(key);
  const base::GroupedKeys keys(some);
  ASSERT_TRUE(PushSame(*table, keys).ok());
  const uint64_t bound = 100 * OldRows::SlotBytes(32);
  ASSERT_TRUE(table->BeginSnapshot(bound).ok());
  std::atomic<bool> done{false};
  std::thread pusher([&] {
    EXPECT_TRUE(PushSame(*table, keys).ok());
    done = true;
  });
  while (table->writes_that_wait() == 0 && !done) std::this_thread::yield();
  EXPECT_FALSE(done);
  EXPECT_LE(table->old_row_bytes(), bound);
  std::vector<float> out(1000 * kSnapshotDim);
  EXPECT_TRUE(table->Pull(keys.view(), base::StepKind::kTrain, {out.data(), kSnapshotDim, kSnapshotDim}).ok())
      << "pulls never wait";
  free(*table);
  pusher.join();
  EXPECT_EQ(table->rows(), 1000u);
}

TEST(SparseSnapshot, APushAtTheBoundWaitsForTheWriter) {
  WaitsUntil([](SparseTable& table) {
    EXPECT_EQ(Snapshot(table).size(), 1000u);
    EXPECT_TRUE(table.EndSnapshot(SnapshotEnd::kComplete).ok());
  });
}

TEST(SparseSnapshot, APushAtTheBoundGoesOnWhenTheSnapshotIsAbandoned) {
  WaitsUntil([](SparseTable& table) { EXPECT_TRUE(table.EndSnapshot(SnapshotEnd::kAbandoned).ok()); });
}

// A row written once, then as many snapshots as it takes the epoch byte to come round to the same number.
TEST(SparseSnapshot, EpochsThatComeRoundAreNotTakenForNew) {
  for (const int gap : {1, 250, 251, 252, 253, 254, 255, 256, 257, 508, 512}) {
    for (const int first : {0, 100, 200, 254}) {
      auto table = MakeSnapshotTable();
      for (int i = 0; i < first; ++i) {
        ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
        ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kAbandoned).ok());
      }
      const base::GroupedKeys keys({1, 2, 3, 77});
      ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
      ASSERT_TRUE(PushSame(*table, keys).ok());
      ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kAbandoned).ok());
      for (int i = 1; i < gap; ++i) {
        ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
        ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kAbandoned).ok());
      }
      const Rows copy = Live(*table);
      ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
      ASSERT_TRUE(PushSame(*table, keys).ok());
      ASSERT_EQ(Snapshot(*table), copy) << gap << " snapshots after " << first;
      ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kComplete).ok());
    }
  }
}

// More than 255 snapshots of every kind; rows that are written often, seldom and never again.
TEST(SparseSnapshot, ChangedRowsAreTheExactDifferenceOverManySnapshots) {
  auto table = MakeSnapshotTable();
  table->TrackChanges(Tracking::kOn);
  base::Rng rng(3);
  Rows saved;
  bool known = false;
  const auto write = [&](int snapshot) {
    std::vector<base::Key> keys;
    for (base::Key key = 0; key < 60; ++key)
      if (rng.Below(key * key + 1) == 0) keys.push_back(key);
    if (snapshot % 3 == 0) keys.push_back(1000 + static_cast<base::Key>(snapshot));
    // Gradients that never come to nothing: a row that is pushed has other bits.
    ASSERT_TRUE(PushSame(*table, base::GroupedKeys(keys), 1 + static_cast<float>(rng.Uniform())).ok());
  };
  for (int snapshot = 0; snapshot < 700; ++snapshot) {
    write(snapshot);
    const Rows copy = Live(*table);
    ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
    write(snapshot);
    // Long runs without a completed snapshot, and without a visited one.
    const bool abandoned = (snapshot > 150 && snapshot < 440 && snapshot % 90 != 0) || snapshot % 5 == 1;
    if (abandoned && snapshot % 2 == 0) {
      ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kAbandoned).ok());
      continue;
    }
    if (known) {
      ASSERT_EQ(Snapshot(*table, Which::kChanged), Difference(copy, saved)) << snapshot;
    } else {
      ASSERT_EQ(Snapshot(*table), copy) << snapshot;
    }
    write(snapshot);
    ASSERT_TRUE(table->EndSnapshot(abandoned ? SnapshotEnd::kAbandoned : SnapshotEnd::kComplete).ok());
    if (abandoned) continue;
    saved = copy;
    known = true;
  }
}

TEST(SparseSnapshot, LoadedRowsHaveChangedAndAClearedTableStartsOver) {
  auto table = MakeSnapshotTable();
  table->TrackChanges(Tracking::kOn);
  ASSERT_TRUE(PushSame(*table, base::GroupedKeys({1, 2, 3})).ok());
  const auto complete = [&](Which which) {
    EXPECT_TRUE(table->BeginSnapshot(kMuch).ok());
    Rows rows = Snapshot(*table, which);
    EXPECT_TRUE(table->EndSnapshot(SnapshotEnd::kComplete).ok());
    return rows;
  };
  complete(Which::kAll);
  EXPECT_TRUE(complete(Which::kChanged).empty());
  const base::Key key = 2;
  const std::vector<float> row(static_cast<size_t>(table->row_width()), 4.0f);
  ASSERT_TRUE(table->Load(base::ShardOf(key), {&key, 1}, row).ok());
  const Rows loaded = complete(Which::kChanged);
  EXPECT_EQ(loaded.size(), 1u);
  EXPECT_TRUE(loaded.contains(2));

  // That rows are gone cannot be told by changed rows.
  table->Clear();
  ASSERT_TRUE(PushSame(*table, base::GroupedKeys({9})).ok());
  ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
  EXPECT_EQ(table->SnapshotRows(0, Which::kChanged).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Snapshot(*table).size(), 1u);
  ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kComplete).ok());
  EXPECT_TRUE(complete(Which::kChanged).empty());

  // A snapshot that is cleared under its writer is lost, not empty.
  ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
  ASSERT_TRUE(PushSame(*table, base::GroupedKeys({9, 10})).ok());
  table->Clear();
  ASSERT_TRUE(PushSame(*table, base::GroupedKeys({9, 10})).ok());
  Rows rows;
  EXPECT_EQ(VisitShard(*table, base::ShardOf(9), Which::kAll, rows).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table->EndSnapshot(SnapshotEnd::kComplete).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(complete(Which::kAll).size(), 2u);
}

TEST(SparseSnapshot, WhatCannotBeIsRefused) {
  auto table = MakeSnapshotTable();
  Rows rows;
  const auto refused = [](const absl::Status& status, absl::StatusCode code, const char* word) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(word), std::string::npos) << status;
    EXPECT_NE(status.message().find("table embedding"), std::string::npos) << status;
  };
  constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
  refused(table->EndSnapshot(SnapshotEnd::kAbandoned), kPrecondition, "no snapshot");
  refused(VisitShard(*table, 0, Which::kAll, rows), kPrecondition, "no snapshot");
  refused(table->BeginSnapshot(100), absl::StatusCode::kInvalidArgument, "room for 64 old rows");
  ASSERT_TRUE(PushSame(*table, base::GroupedKeys({1, 2, 3})).ok());
  ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
  refused(table->BeginSnapshot(kMuch), kPrecondition, "only one");
  refused(VisitShard(*table, 0, Which::kChanged, rows), kPrecondition, "not tracked");
  ASSERT_TRUE(VisitShard(*table, 0, Which::kAll, rows).ok());
  refused(VisitShard(*table, 0, Which::kAll, rows), kPrecondition, "visited in shard 0");
  refused(table->EndSnapshot(SnapshotEnd::kComplete), kPrecondition, "were not visited");
  table->TrackChanges(Tracking::kOn);
  ASSERT_TRUE(table->BeginSnapshot(kMuch).ok());
  refused(VisitShard(*table, 0, Which::kChanged, rows), kPrecondition, "not known");
  ASSERT_TRUE(table->EndSnapshot(SnapshotEnd::kAbandoned).ok());
}

TEST(SparseSnapshot, KeysOutOfOrderAreFoundInAndBetweenThePiecesOfAPush) {
  std::vector<base::Key> some;
  for (base::Key key = 0; key < 500; ++key) some.push_back(key);
  for (const size_t by : {52, 64}) {
    auto table = MakeSnapshotTable();
    ASSERT_TRUE(table->BeginSnapshot(128 * OldRows::SlotBytes(32)).ok());  // pieces of 64 keys
    std::vector<base::Key> keys = base::GroupedKeys(some).keys();
    std::rotate(keys.begin(), keys.begin() + static_cast<int64_t>(by), keys.end());
    const std::vector<float> grads(keys.size() * kSnapshotDim, 1.0f);
    base::TableGrads push;
    push.keys = {0, keys, {}};
    push.grads = {grads.data(), kSnapshotDim, kSnapshotDim};
    const absl::Status status = table->Push(push, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(table->rows(), 500 - by) << "the keys before have been applied";
    EXPECT_TRUE(table->EndSnapshot(SnapshotEnd::kAbandoned).ok());
  }
}

}  // namespace
}  // namespace regatta::table
