#include "base/freed_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "base/resident_memory.h"

namespace regatta::base {
namespace {

using std::chrono::hours;

TEST(FreedMemory, IsLookedAtWhenTheProcessHasGrown) {
  FreedMemory freed;
  const auto now = FreedMemory::Clock::now();
  const uint64_t resident = ResidentBytes();
  ASSERT_GT(resident, 0u);
  EXPECT_FALSE(freed.Look(resident, now));
  EXPECT_FALSE(freed.Look(resident + FreedMemory::kGrown - 1, now + hours(1)));
  EXPECT_TRUE(freed.Look(resident + FreedMemory::kGrown, now + hours(1)));
  EXPECT_FALSE(freed.Look(resident + 2 * FreedMemory::kGrown, now + hours(1))) << "a moment ago";
  EXPECT_FALSE(freed.Look(ResidentBytes(), now + hours(2))) << "it has not grown since";
}

#ifndef __clang__  // the sanitizers, which clang builds, have a malloc of their own
TEST(FreedMemory, IsKeptAndGivenBack) {
  KeepFreedMemory();
  FreedMemory freed;
  const uint64_t before = ResidentBytes();
  EXPECT_FALSE(freed.Look(before));
  constexpr size_t kBlock = 1 << 20, kBlocks = 64;
  {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (size_t i = 0; i < kBlocks; ++i) std::memset(blocks.emplace_back(new char[kBlock]).get(), 1, kBlock);
  }
  EXPECT_GT(ResidentBytes(), before + kBlock * kBlocks / 2) << "it was not kept";
  EXPECT_TRUE(freed.Look(ResidentBytes()));
  EXPECT_LT(ResidentBytes(), before + kBlock * kBlocks / 2);
}
#endif

}  // namespace
}  // namespace regatta::base
