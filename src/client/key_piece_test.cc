#include "client/key_piece.h"

#include <gtest/gtest.h>

#include "base/grouped_keys.h"
#include "wire/frame.h"

namespace regatta::client {
namespace {

TEST(KeyPiece, LanesShareEveryKeyOut) {
  std::vector<base::Key> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 7919;
  const base::GroupedKeys grouped(std::move(keys));
  const std::vector<base::TableKeys> tables{grouped.view(), grouped.view()};
  const wire::LaneMap map{2, 3};
  size_t next = 0;
  for (int server = 0; server < 2; ++server) {
    for (int lane = 0; lane < 3; ++lane) {
      const wire::Range shards = map.Shards(server, lane);
      const auto pieces =
          PiecesOfLane(tables, shards, [](const base::TableKeys& t) -> const base::TableKeys& { return t; });
      ASSERT_EQ(pieces.size(), 2u);
      EXPECT_EQ(pieces[0].begin, next);
      EXPECT_EQ(pieces[1].begin, next);
      next = pieces[0].end;
      for (const base::Key key : pieces[0].Of(tables[0])) EXPECT_TRUE(shards.Contains(base::ShardOf(key)));
    }
  }
  EXPECT_EQ(next, 1000u);
}

// Frames have the keys of the pieces in their order, each once. None costs more than it may, but for one key.
TEST(KeyPiece, FramesHaveEveryKeyOnceWithinTheirLimit) {
  const std::vector<KeyPiece> pieces{{0, 10, 40}, {1, 0, 0}, {2, 5, 12}};
  const std::vector<size_t> bytes{8, 8, 100};
  for (const size_t most : {100, 128, 250, 100'000}) {
    SCOPED_TRACE(most);
    std::vector<size_t> next{10, 0, 5};
    for (const std::vector<KeyPiece>& frame : CutFrames(pieces, bytes, most)) {
      size_t cost = 0;
      for (const KeyPiece& piece : frame) {
        EXPECT_EQ(piece.begin, next[piece.index]);
        next[piece.index] = piece.end;
        cost += (piece.end - piece.begin) * bytes[piece.index];
      }
      EXPECT_LE(cost, most + 100);
    }
    EXPECT_EQ(next, (std::vector<size_t>{40, 0, 12}));
  }
  EXPECT_EQ(CutFrames(pieces, bytes, 100'000).size(), 1u);
}

TEST(KeyPiece, AFrameTakesAKeyHoweverLargeAndNotTooManySmallOnes) {
  EXPECT_EQ(CutFrames(std::vector<KeyPiece>{{0, 0, 3}}, std::vector<size_t>{50}, 10).size(), 3u);
  EXPECT_EQ(CutFrames({}, {}, 10).size(), 1u);  // in sync every lane gets a frame
  for (const auto& frame :
       CutFrames(std::vector<KeyPiece>{{0, 0, wire::kMaxKeysAFrame * 2}}, std::vector<size_t>{0}, size_t{1} << 40))
    for (const KeyPiece& piece : frame) EXPECT_LE(piece.end - piece.begin, wire::kMaxKeysAFrame);
}

}  // namespace
}  // namespace regatta::client
