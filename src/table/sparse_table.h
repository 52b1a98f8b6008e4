// A table of rows by 64-bit key, in 1024 virtual shards.
// Thread-safety: Pull, Push and the counters are concurrent; a row is read and updated whole (row-atomic).
// Invariants: a row's optimizer state follows its weights in the same block; no row pointer outlives its shard's lock;
// a row's initial value is a function of (seed, table, key), never of arrival order; a pull creates nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/key.h"
#include "base/status.h"
#include "base/step.h"
#include "table/table_config.h"

namespace regatta::table {

// What a push does with a gradient that holds NaN or Inf.
enum class NanPolicy : uint8_t { kSkip, kAbort, kClip };

struct PushOptions {
  uint64_t step = 0;     // the schedule's argument
  uint32_t samples = 1;  // the gradients are sums over so many samples
  NanPolicy nan_policy = NanPolicy::kSkip;
};

class SparseTable {
 public:
  // INVALID_ARGUMENT names the field of `config` that cannot be.
  static absl::StatusOr<std::unique_ptr<SparseTable>> Create(const SparseTableConfig& config);
  virtual ~SparseTable() = default;

  virtual const SparseTableConfig& config() const = 0;
  virtual int pull_width() const = 0;  // floats a pull gives a key
  virtual int push_width() const = 0;  // floats a push brings a key
  virtual int row_width() const = 0;   // floats a row stores: weights, then state

  // out.row(i) = the row of keys.keys[i]; a key without one gives its initial value (training) or zeros (inference).
  virtual absl::Status Pull(const base::TableKeys& keys, base::StepKind kind, base::RowsView<float> out) const = 0;
  // Applies the rule to every row of grads.keys, creating those that are missing.
  virtual absl::Status Push(const base::TableGrads& grads, const PushOptions& options) = 0;

  virtual uint64_t rows() const = 0;
  virtual uint64_t memory_bytes() const = 0;       // index and rows, as allocated
  virtual uint64_t skipped_gradients() const = 0;  // rows left alone by NanPolicy::kSkip

  // Visits the rows of one virtual shard under its lock; order is unspecified.
  using RowFn = std::function<void(base::Key, std::span<const float> row)>;
  virtual void ForEachRow(uint32_t shard, const RowFn& fn) const = 0;
  virtual uint64_t ShardRows(uint32_t shard) const = 0;
  // Puts rows (row_width floats each, back to back) in place; all keys belong to `shard`. For loading.
  virtual absl::Status Load(uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows) = 0;
  virtual void Clear() = 0;
};

}  // namespace regatta::table
