#include "base/freed_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/resident_memory.h"

namespace regatta::base {
namespace {

TEST(FreedMemory, IsGivenBackWhenTheProcessHasGrown) {
  KeepFreedMemory();
  FreedMemory freed;
  const auto now = FreedMemory::Clock::now();
  const uint64_t before = ResidentBytes();
  ASSERT_GT(before, 0u);
  EXPECT_FALSE(freed.Look(before, now));
  constexpr size_t kBlock = 1 << 20, kBlocks = 64;
  const auto fill = [] {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (size_t i = 0; i < kBlocks; ++i) std::memset(blocks.emplace_back(new char[kBlock]).get(), 1, kBlock);
  };
  fill();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)  // these have a malloc of their own
  EXPECT_GT(ResidentBytes(), before + kBlock * kBlocks / 2) << "it was not kept";
  EXPECT_TRUE(freed.Look(ResidentBytes(), now));
  EXPECT_LT(ResidentBytes(), before + kBlock * kBlocks / 2);
#endif
  EXPECT_FALSE(freed.Look(ResidentBytes(), now + std::chrono::hours(1))) << "it has not grown since";
}

}  // namespace
}  // namespace regatta::base
