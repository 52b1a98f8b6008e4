// Which lane a key belongs to. Servers split the virtual shards in even contiguous ranges, and a server's sparse lanes
// split its range again: keys that are grouped by shard are grouped by lane. The dense parameters are one array, split
// over the servers in even contiguous blocks; each server has one more lane for its block.
// Thread-safety: plain values.
#pragma once

#include <cstdint>

#include "base/key.h"

namespace regatta::wire {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool Contains(int64_t i) const { return i >= begin && i < end; }
};

// Part `i` of [0, size) cut into `parts` even contiguous pieces.
constexpr Range EvenPart(int64_t size, int64_t parts, int64_t i) { return {size * i / parts, size * (i + 1) / parts}; }

struct LaneMap {
  int servers = 1;
  int sparse_lanes = 1;  // a server

  static constexpr int kMaxLanes = base::kVirtualShards;  // of all servers together

  // Virtual shards of sparse lane `lane` of `server`.
  constexpr Range Shards(int server, int lane) const {
    return EvenPart(base::kVirtualShards, int64_t{servers} * sparse_lanes, int64_t{server} * sparse_lanes + lane);
  }
  // The server's block of `size` dense elements.
  constexpr Range DenseBlock(int server, int64_t size) const { return EvenPart(size, servers, server); }
  constexpr int dense_lane() const { return sparse_lanes; }  // the index after the sparse ones
  constexpr int lanes() const { return sparse_lanes + 1; }   // a server
};

}  // namespace regatta::wire
