// Distinct keys put in the order that tables and lanes take them: grouped by virtual shard. A training step gets its
// keys grouped by lookup/, which is faster.
// Thread-safety: constant after construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/key.h"
#include "base/step.h"

namespace regatta::base {

class GroupedKeys {
 public:
  explicit GroupedKeys(std::vector<Key> keys, int table = 0) : table_(table), keys_(std::move(keys)) {
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    std::stable_sort(keys_.begin(), keys_.end(), [](Key a, Key b) { return ShardOf(a) < ShardOf(b); });
    shard_begin_.assign(kVirtualShards + 1, 0);
    for (const Key key : keys_) ++shard_begin_[ShardOf(key) + 1];
    for (int s = 0; s < kVirtualShards; ++s) shard_begin_[s + 1] += shard_begin_[s];
  }

  const std::vector<Key>& keys() const { return keys_; }
  size_t size() const { return keys_.size(); }
  TableKeys view() const { return {table_, keys_, shard_begin_}; }

 private:
  int table_;
  std::vector<Key> keys_;
  std::vector<uint32_t> shard_begin_;
};

}  // namespace regatta::base
