// A part of a request's keys: what of them goes down a lane, and into which of its frames.
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/step.h"
#include "wire/lanes.h"

namespace regatta::client {

// Keys [begin, end) of entry `index` of a request's tables.
struct KeyPiece {
  size_t index = 0;
  size_t begin = 0;
  size_t end = 0;

  std::span<const base::Key> Of(const base::TableKeys& keys) const { return keys.keys.subspan(begin, end - begin); }
};

// What of every entry of `tables` belongs to the virtual shards of a lane; keys_of(entry) are its TableKeys.
template <typename Tables, typename KeysOf>
std::vector<KeyPiece> PiecesOfLane(const Tables& tables, const wire::Range& shards, const KeysOf& keys_of) {
  std::vector<KeyPiece> pieces;
  for (size_t i = 0; i < tables.size(); ++i) {
    const base::TableKeys& keys = keys_of(tables[i]);
    pieces.push_back(
        {i, keys.shard_begin[static_cast<size_t>(shards.begin)], keys.shard_begin[static_cast<size_t>(shards.end)]});
  }
  return pieces;
}

// What of a lane's keys goes into which frame: `bytes[i]` is what a key of entry i costs, `most` what a frame may,
// but for one key. There is one frame at least, perhaps without keys.
std::vector<std::vector<KeyPiece>> CutFrames(std::span<const KeyPiece> pieces, std::span<const size_t> bytes,
                                             size_t most);

}  // namespace regatta::client
