#include "table/store/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "base/random.h"

namespace regatta::table {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::unique_ptr<Arena> MakeArena(uint64_t capacity) {
  auto arena = Arena::Create(capacity);
  EXPECT_TRUE(arena.ok()) << arena.status();
  return *std::move(arena);
}

TEST(Arena, BlocksAreAlignedToTheirSizeAndNeverAtHandleZero) {
  auto arena = MakeArena(64 * kMiB);
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{1024}, uint64_t{3000}, uint64_t{70'000}, kMiB}) {
    auto block = arena->Allocate(bytes);
    ASSERT_TRUE(block.ok()) << block.status();
    const uint64_t offset = uint64_t{arena->HandleOf(*block)} * Arena::kGranule;
    EXPECT_NE(offset, 0u);
    EXPECT_EQ(offset % Arena::BlockSize(bytes), 0u);
    EXPECT_EQ(arena->At(arena->HandleOf(*block)), *block);
    std::memset(*block, 0xAB, Arena::BlockSize(bytes));
  }
}

TEST(Arena, FreedBlocksJoinAndServeALargerOne) {
  auto arena = MakeArena(2 * kMiB);
  // 1 MiB in pieces, then everything else, so that a large block can only come from joined pieces.
  std::vector<std::byte*> pieces;
  while (true) {
    auto block = arena->Allocate(1024);
    if (!block.ok()) break;
    pieces.push_back(*block);
  }
  EXPECT_EQ(pieces.size(), 2047u);  // all but the one that holds offset 0
  EXPECT_EQ(arena->Allocate(1024).status().code(), absl::StatusCode::kResourceExhausted);
  for (std::byte* piece : pieces) arena->Free(piece, 1024);
  EXPECT_EQ(arena->allocated_bytes(), 0u);
  auto large = arena->Allocate(kMiB);
  ASSERT_TRUE(large.ok()) << large.status();
  auto half = arena->Allocate(kMiB / 2);
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ(arena->allocated_bytes(), kMiB + kMiB / 2);
}

TEST(Arena, AFreedBlockIsReusedBeforeFreshMemory) {
  auto arena = MakeArena(8 * kMiB);
  auto first = arena->Allocate(64 * 1024);
  auto second = arena->Allocate(64 * 1024);
  ASSERT_TRUE(first.ok() && second.ok());
  arena->Free(*first, 64 * 1024);
  for (int i = 0; i < 4; ++i) {
    auto small = arena->Allocate(16 * 1024);
    ASSERT_TRUE(small.ok());
    // The gap in front of the first block may serve too; nothing comes from behind the second.
    EXPECT_LT(*small, *second);
  }
}

TEST(Arena, ManySizesInRandomOrderNeverOverlap) {
  auto arena = MakeArena(64 * kMiB);
  base::Rng rng(3);
  std::map<std::byte*, std::pair<uint64_t, unsigned char>> live;
  uint64_t total = 0;
  for (int i = 0; i < 5000; ++i) {
    if (live.size() > 100 || (!live.empty() && rng.Below(2) == 0)) {
      auto it = live.begin();
      std::advance(it, static_cast<int64_t>(rng.Below(live.size())));
      const auto [bytes, fill] = it->second;
      for (uint64_t b = 0; b < bytes; b += 509) ASSERT_EQ(static_cast<unsigned char>(it->first[b]), fill);
      arena->Free(it->first, bytes);
      total -= Arena::BlockSize(bytes);
      live.erase(it);
    } else {
      const uint64_t bytes = 1 + rng.Below(uint64_t{1} << (8 + rng.Below(10)));
      auto block = arena->Allocate(bytes);
      ASSERT_TRUE(block.ok()) << block.status();
      const unsigned char fill = static_cast<unsigned char>(i);
      std::memset(*block, fill, bytes);
      live[*block] = {bytes, fill};
      total += Arena::BlockSize(bytes);
    }
    ASSERT_EQ(arena->allocated_bytes(), total);
  }
}

TEST(Arena, ResetGivesEverythingBack) {
  auto arena = MakeArena(4 * kMiB);
  auto before = arena->Allocate(kMiB);
  ASSERT_TRUE(before.ok());
  std::memset(*before, 1, kMiB);
  arena->Free(*before, kMiB);
  arena->Reset();
  EXPECT_EQ(arena->allocated_bytes(), 0u);
  auto after = arena->Allocate(2 * kMiB);
  ASSERT_TRUE(after.ok()) << after.status();
  for (uint64_t i = 0; i < 2 * kMiB; i += 100) ASSERT_EQ(static_cast<int>((*after)[i]), 0);
}

TEST(Arena, ABlockOrACapacityThatCannotBeIsRefused) {
  EXPECT_EQ(Arena::Create(1000).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Arena::Create(2 * Arena::kMaxCapacity).status().code(), absl::StatusCode::kInvalidArgument);
  auto arena = MakeArena(4 * kMiB);
  EXPECT_EQ(arena->Allocate(3 * kMiB).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(arena->Allocate(~uint64_t{0}).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace regatta::table
