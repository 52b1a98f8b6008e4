// A table of rows by 64-bit key, in 1024 virtual shards: an accessor (what a row is) over a store (where rows are).
// Thread-safety: Pull, Push, Add, Assign, ForEachRow, Load, the counters and the snapshot are concurrent, but nothing
// that writes rows may be under way during BeginSnapshot; a row is read and updated whole (row-atomic). Clear waits for
// the others to leave, shard by shard.
// Invariants: a row's optimizer state follows its weights in the same block; no row pointer outlives its shard's lock;
// a row's initial value is a function of (seed, table, key), never of arrival order; a pull creates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/key.h"
#include "base/status.h"
#include "base/step.h"
#include "table/accessor/accessor.h"
#include "table/push_options.h"
#include "table/schedule.h"
#include "table/store/memory_store.h"
#include "table/table_config.h"

namespace regatta::table {

class SparseTable {
 public:
  // INVALID_ARGUMENT names the field of `config` that cannot be.
  static absl::StatusOr<std::unique_ptr<SparseTable>> Create(const SparseTableConfig& config);

  const SparseTableConfig& config() const { return config_; }
  int pull_width() const { return accessor_->pull_width(); }  // floats a pull gives a key
  int push_width() const { return accessor_->push_width(); }  // floats a push brings a key
  int row_width() const { return accessor_->row_width(); }    // floats a row stores: weights, then state

  // out.row(i) = the row of keys.keys[i]; a key without one gives its initial value (training) or zeros (inference).
  absl::Status Pull(const base::TableKeys& keys, base::StepKind kind, base::RowsView<float> out) const;
  // Applies the rule to every row of grads.keys, creating those that are missing, with grads.learning_rate or else the
  // schedule's. An error of NanPolicy::kAbort leaves the table as it was; when memory runs out, the keys before the one
  // named have been applied.
  absl::Status Push(const base::TableGrads& grads, const PushOptions& options);
  // Adds differences.grads (pull_width floats a key) to the weights and leaves the rules' states alone; rows that are
  // missing are created with their initial value first.
  absl::Status Add(const base::TableGrads& differences, NanPolicy nan_policy);
  // The error that Push and Add give with NanPolicy::kAbort: for a request of several tables, before any is changed.
  absl::Status CheckFinite(const base::TableGrads& grads) const;
  // The error that Push gives for a learning rate of the commit, for the same.
  absl::Status CheckLearningRate(std::optional<float> rate) const;
  // Puts values.grads (pull_width floats a key) in place of the weights, but not NaN or Inf; otherwise as Add.
  absl::Status Assign(const base::TableGrads& values);

  uint64_t rows() const { return store_->rows(); }
  uint64_t memory_bytes() const { return store_->memory_bytes(); }  // index and rows, as allocated
  uint64_t skipped_gradients() const { return skipped_.load(std::memory_order_relaxed); }  // by NanPolicy::kSkip

  // Visits the rows of one virtual shard under its lock; order is unspecified.
  using RowFn = std::function<void(base::Key, std::span<const float> row)>;
  void ForEachRow(uint32_t shard, const RowFn& fn) const;
  uint64_t ShardRows(uint32_t shard) const { return store_->ShardRows(shard); }
  // Puts rows (row_width floats each, back to back) in place; all keys belong to `shard`. For loading.
  absl::Status Load(uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows);
  void Clear() { store_->Clear(); }
  // Of virtual shards [begin, end) only.
  void ClearShards(uint32_t begin, uint32_t end) { store_->Clear(begin, end); }

  // A snapshot: the table as it is during BeginSnapshot, while pushes go on. One writer begins it, visits every shard
  // once, in any order and from any threads, and ends it. What a push, Add, Assign or Load writes meanwhile in a shard
  // that the writer has not visited is kept as it was, in `bound` bytes at most: at the bound they wait for the writer.
  // Pulls never do. Takes time by shards, not by rows. FAILED_PRECONDITION where a snapshot is in progress.
  absl::Status BeginSnapshot(uint64_t bound);
  // Visits the rows of one virtual shard as of the snapshot, under its lock; order is unspecified. Once a snapshot and
  // shard. kChanged: only those written since the last completed snapshot began. It needs tracked changes, and a
  // snapshot completed since tracking began and since Clear (FAILED_PRECONDITION otherwise). ABORTED where Clear came
  // during the snapshot.
  absl::Status ForEachSnapshotRow(uint32_t shard, Which which, const RowFn& fn);
  // Rows that ForEachSnapshotRow is going to visit; before it.
  absl::StatusOr<uint64_t> SnapshotRows(uint32_t shard, Which which) const;
  // kComplete: the rows are safe, changes count from this snapshot on; FAILED_PRECONDITION where shards with rows were
  // not visited. kAbandoned, at any time: as if the snapshot had not been.
  absl::Status EndSnapshot(SnapshotEnd end);
  // Off at first, because marking rows costs pushes a little (docs/benchmarks.md).
  void TrackChanges(Tracking tracking) { store_->TrackChanges(tracking); }
  uint64_t old_row_bytes() const { return store_->old_row_bytes(); }       // kept for the snapshot in progress
  uint64_t writes_that_wait() const { return store_->walks_that_wait(); }  // at its bound

 private:
  SparseTable(const SparseTableConfig& config, std::unique_ptr<Accessor> accessor, const Schedule& schedule,
              std::unique_ptr<MemoryStore> store);

  absl::Status Write(const base::TableGrads& values, NanPolicy nan_policy,
                     void (Accessor::*write)(const PushBlock&) const);
  absl::Status CheckPush(const base::TableGrads& grads, const PushOptions& options) const;

  const SparseTableConfig config_;
  const std::unique_ptr<Accessor> accessor_;
  const Schedule schedule_;
  const std::unique_ptr<MemoryStore> store_;
  std::atomic<uint64_t> skipped_{0};
};

}  // namespace regatta::table
