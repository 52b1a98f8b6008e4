// The step: what a worker asks for and what it learnt, as views over memory that the caller or the communicator
// owns. comm/, client/, log and the wire carry these without knowing data/ or tensors.
// Thread-safety: plain values; a step belongs to one thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/key.h"

namespace regatta::base {

enum class Device : uint8_t { kCpu, kCuda };

// Rows of `width` elements, `stride` elements apart.
template <typename T>
struct RowsView {
  T* data = nullptr;
  int64_t stride = 0;
  int width = 0;
  Device device = Device::kCpu;

  T* row(int64_t i) const { return data + i * stride; }
};

// Which batches of a pass were learnt from: every batch below `low`, and batch low + i where bit i of `window` is
// set. Batch k of (pass, worker) is a pure function of the files, seed, batch size and split, so this is all that a
// resume needs.
struct DataPosition {
  uint64_t pass = 0;
  uint64_t low = 0;
  uint64_t window = 0;

  static constexpr int kWindow = 64;

  bool Contains(uint64_t batch) const {
    return batch < low || (batch < low + kWindow && ((window >> (batch - low)) & 1));
  }
  // batch must be below low + kWindow.
  void Add(uint64_t batch) {
    if (batch < low) return;
    window |= uint64_t{1} << (batch - low);
    while (window & 1) {
      window >>= 1;
      ++low;
    }
  }
  // What both of them contain. Of the same pass.
  DataPosition Common(const DataPosition& other) const {
    const DataPosition& less = low <= other.low ? *this : other;
    const DataPosition& more = low <= other.low ? other : *this;
    DataPosition common{pass, less.low, 0};
    for (uint64_t i = 0; i < kWindow; ++i)
      if (((less.window >> i) & 1) && more.Contains(less.low + i)) common.window |= uint64_t{1} << i;
    return common;
  }
  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

enum class StepKind : uint8_t { kTrain, kInfer };  // in inference a miss is zeros and creates nothing

// Distinct keys of one sparse table, grouped by virtual shard: shards ascend, and shard s holds keys
// [shard_begin[s], shard_begin[s + 1]). shard_begin has kVirtualShards + 1 entries.
struct TableKeys {
  int table = 0;  // index among the job's sparse tables
  std::span<const Key> keys;
  std::span<const uint32_t> shard_begin;
};

// What is known of a pass before its first step.
struct PassKeys {
  uint64_t pass = 0;
  StepKind kind = StepKind::kTrain;
  uint64_t first_step = 0;   // the step of the pass's batch 0
  uint64_t first_batch = 0;  // the first batch that is not learnt yet
  uint64_t window = 0;       // and those behind it that are (DataPosition)
};

// `step` counts the batches of the job: those of earlier passes, then k. `thread` is the training thread, 0 to
// thread_num - 1: a thread has one step in flight.
struct StepKeys {
  uint64_t step = 0;
  int thread = 0;
  StepKind kind = StepKind::kTrain;
  std::span<const TableKeys> tables;
};

// What a pull gives: tables[i] holds a row per key of StepKeys::tables[i], pull_width wide. dense is the flattened
// dense parameters, valid until the step's Commit (or the next Pull in inference).
struct StepRows {
  std::span<const RowsView<const float>> tables;
  std::span<const float> dense;
};

// What a push brings for one table: row i is the gradient of keys[i], summed over the step's samples, push_width wide.
// The per-key columns (slot, show, click) are empty unless the table's accessor wants them.
struct TableGrads {
  TableKeys keys;
  RowsView<const float> grads;
  std::span<const uint32_t> slot;
  std::span<const float> show;
  std::span<const float> click;
};

// A contiguous piece of the flattened dense gradient, summed over the step's samples.
struct DenseGrad {
  int64_t offset = 0;
  std::span<const float> values;
};

// All that a step learnt. Gradients are sums over `samples`; the table forms the mean.
struct StepGrads {
  uint64_t step = 0;
  int thread = 0;
  uint32_t samples = 0;
  std::span<const TableGrads> tables;
  std::span<const DenseGrad> dense;
  uint64_t batch = 0;  // the batch of the pass it was learnt from
  uint64_t pass = 0;
  std::span<const uint64_t> batches = {};  // where it is the sum of several, ascending; empty = `batch`
};

}  // namespace regatta::base
