// The step: what a worker asks for and what it learnt, as views over memory that the caller or the communicator
// owns. comm/, client/, log and the wire carry these without knowing data/ or tensors.
// Thread-safety: plain values; a step belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/data_position.h"
#include "base/device.h"
#include "base/key.h"

namespace regatta::base {

// Rows of `width` elements, `stride` elements apart.
template <typename T>
struct RowsView {
  T* data = nullptr;
  int64_t stride = 0;
  int width = 0;
  Device device = Device::kCpu;

  T* row(int64_t i) const { return data + i * stride; }
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
  DataPosition learnt = {};  // the pass, and which of its batches were learnt before
  StepKind kind = StepKind::kTrain;
  uint64_t first_step = 0;  // the step of the pass's batch 0
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
// The per-key columns (slot, show, click) are empty unless the table's accessor wants them. With a learning rate the
// table's rule takes that instead of its schedule's (base/learning_rate.h says which may be).
struct TableGrads {
  TableKeys keys;
  RowsView<const float> grads;
  std::span<const uint32_t> slot;
  std::span<const float> show;
  std::span<const float> click;
  std::optional<float> learning_rate = {};
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
  std::span<const uint64_t> batches = {};         // where it is the sum of several, ascending; empty = `batch`
  std::optional<float> dense_learning_rate = {};  // instead of that of the dense parameters' schedule
  bool finite = false;                            // known to hold neither NaN nor Inf: nobody needs to look again
};

}  // namespace regatta::base
