// A feature's id and the virtual shard it belongs to.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace regatta::base {

using Key = uint64_t;  // every value is legal, 0 and 2^64-1 included

inline constexpr int kVirtualShards = 1024;
inline constexpr int kVirtualShardBits = 10;

// The one hash of a key: its top bits choose the shard, the bits below serve the shard's index.
constexpr uint64_t KeyHash(Key key) { return Mix64(key); }
constexpr uint32_t ShardOfHash(uint64_t hash) { return static_cast<uint32_t>(hash >> (64 - kVirtualShardBits)); }
constexpr uint32_t ShardOf(Key key) { return ShardOfHash(KeyHash(key)); }

}  // namespace regatta::base
