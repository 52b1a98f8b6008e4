#include "client/key_piece.h"

#include <algorithm>

#include "wire/frame.h"

namespace regatta::client {
namespace {

constexpr size_t kFrameKeys = wire::kMaxKeysAFrame / 2;

}  // namespace

std::vector<std::vector<KeyPiece>> CutFrames(std::span<const KeyPiece> pieces, std::span<const size_t> bytes,
                                             size_t most) {
  std::vector<std::vector<KeyPiece>> frames(1);
  size_t keys_left = kFrameKeys, bytes_left = most;
  for (KeyPiece piece : pieces) {
    const size_t cost = std::max<size_t>(bytes[piece.index], 1);
    do {
      const size_t room = std::max<size_t>(std::min(keys_left, bytes_left / cost), 1);
      const size_t end = std::min(piece.end, piece.begin + room);
      frames.back().push_back({piece.index, piece.begin, end});
      const size_t keys = end - piece.begin;
      keys_left -= std::min(keys_left, keys);
      bytes_left -= std::min(bytes_left, keys * cost);
      piece.begin = end;
      if (piece.begin == piece.end) break;
      frames.emplace_back();
      keys_left = kFrameKeys;
      bytes_left = most;
    } while (true);
  }
  return frames;
}

}  // namespace regatta::client
