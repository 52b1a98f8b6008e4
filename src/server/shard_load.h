// How evenly the keys that are asked for spread over the virtual shards.
// Thread-safety: all methods are concurrent.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/key.h"
#include "wire/lanes.h"

namespace regatta::server {

class ShardLoad {
 public:
  // Keys of a request, grouped by shard.
  void Add(std::span<const base::Key> keys) {
    for (size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
      const uint32_t shard = base::ShardOf(keys[begin]);
      while (end < keys.size() && base::ShardOf(keys[end]) == shard) ++end;
      counts_[shard].fetch_add(end - begin, std::memory_order_relaxed);
    }
  }
  // Keys of the busiest shard over the mean of `shards`; 0 where there were none.
  double Skew(const wire::Range& shards) const {
    uint64_t most = 0, sum = 0;
    for (int64_t shard = shards.begin; shard < shards.end; ++shard) {
      const uint64_t n = counts_[static_cast<size_t>(shard)].load(std::memory_order_relaxed);
      most = std::max(most, n);
      sum += n;
    }
    return sum == 0 ? 0 : static_cast<double>(most) * static_cast<double>(shards.size()) / static_cast<double>(sum);
  }

 private:
  std::array<std::atomic<uint64_t>, base::kVirtualShards> counts_{};
};

}  // namespace regatta::server
