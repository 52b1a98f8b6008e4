// Distinct keys put in the order that tables take them: grouped by virtual shard. For tests and benchmarks; a trainer
// gets its keys from lookup/.
// Thread-safety: constant after construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/key.h"
#include "base/step.h"

namespace regatta::table {

class GroupedKeys {
 public:
  explicit GroupedKeys(std::vector<base::Key> keys) : keys_(std::move(keys)) {
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    std::stable_sort(keys_.begin(), keys_.end(),
                     [](base::Key a, base::Key b) { return base::ShardOf(a) < base::ShardOf(b); });
    shard_begin_.assign(base::kVirtualShards + 1, 0);
    for (const base::Key key : keys_) ++shard_begin_[base::ShardOf(key) + 1];
    for (int s = 0; s < base::kVirtualShards; ++s) shard_begin_[s + 1] += shard_begin_[s];
  }

  const std::vector<base::Key>& keys() const { return keys_; }
  size_t size() const { return keys_.size(); }
  base::TableKeys view() const { return {0, keys_, shard_begin_}; }

 private:
  std::vector<base::Key> keys_;
  std::vector<uint32_t> shard_begin_;
};

}  // namespace regatta::table
