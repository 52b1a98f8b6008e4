// What one worker's step brings down one lane, in memory of its own, which counts as the worker's while it waits.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/key.h"
#include "base/raw_vector.h"
#include "base/step.h"
#include "server/push_memory.h"

namespace regatta::server {

struct TablePart {
  int table = 0;
  int width = 0;
  base::RawVector<base::Key> keys;  // grouped by virtual shard, shards ascending
  base::RawVector<float> rows;      // width floats a key
  bool named = false;               // whether the push has a section of the table, perhaps without keys
  std::optional<float> learning_rate;

  base::TableGrads View() const {
    base::TableGrads view;
    view.keys = {table, keys, {}};
    view.grads = {rows.data(), width, width};
    view.learning_rate = learning_rate;
    return view;
  }
};

struct StepPart {
  uint64_t pass = 0;
  uint64_t step = 0;
  uint32_t samples = 0;
  uint64_t logged = 0;            // its first record in the lane's log; 0 = none
  std::vector<TablePart> tables;  // of a sparse lane
  std::vector<float> dense;       // of the dense lane
  std::optional<float> dense_learning_rate;
  HeldMemory held;  // of all this, where it waits to be applied
};

}  // namespace regatta::server
