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

TEST(FreedMemory, NothingHappensWhileTheProcessDoesNotGrow) {
  FreedMemory freed;
  const auto now = FreedMemory::Clock::now();
  const uint64_t resident = ResidentBytes();
  ASSERT_GT(resident, 0u);
  EXPECT_FALSE(freed.ReturnIfGrown(resident, now));
  EXPECT_FALSE(freed.ReturnIfGrown(resident + FreedMemory::kGrown - 1, now + hours(1)));
  EXPECT_FALSE(freed.ReturnIfGrown(resident / 2, now + hours(2)));
}

#ifndef __clang__  // the sanitizers, which clang builds, have a malloc of their own
// Blocks that are freed again while others between them stay: malloc has their memory, and no trim at the end of the
// heap gives it back.
class FreedMemoryTest : public testing::Test {
 protected:
  static constexpr size_t kBlock = 1 << 20, kBlocks = 80;
  void SetUp() override { KeepFreedMemory(); }
  static void TakeAndFree(size_t blocks = kBlocks) {
    std::vector<std::unique_ptr<char[]>> taken;
    for (size_t i = 0; i < blocks; ++i) std::memset(taken.emplace_back(new char[kBlock]).get(), 1, kBlock);
  }
  FreedMemory freed_;
  const FreedMemory::Clock::time_point now_ = FreedMemory::Clock::now();
  const uint64_t resident_ = ResidentBytes();
};

TEST_F(FreedMemoryTest, IsKeptAndGivenBackWhenTheProcessHasGrown) {
  EXPECT_FALSE(freed_.ReturnIfGrown(resident_, now_));
  TakeAndFree();
  EXPECT_GT(ResidentBytes(), resident_ + kBlock * kBlocks / 2) << "it was not kept";
  const uint64_t grown = std::max(FreedMemory::kGrown, resident_ / 16);
  EXPECT_FALSE(freed_.ReturnIfGrown(resident_ + grown - 1, now_ + hours(1)));
  EXPECT_TRUE(freed_.ReturnIfGrown(ResidentBytes(), now_ + hours(1)));
  EXPECT_LT(ResidentBytes(), resident_ + kBlock * kBlocks / 2);
  EXPECT_FALSE(freed_.ReturnIfGrown(resident_ + kBlock * kBlocks * 2, now_ + hours(1))) << "a moment ago";
  EXPECT_FALSE(freed_.ReturnIfGrown(ResidentBytes(), now_ + hours(2))) << "it has not grown since";
}

// Frames of the next step take what the last step's have freed: to give it back and ask for it again costs more than
// to keep it.
TEST_F(FreedMemoryTest, WhatIsTakenAgainIsKeptForAWhile) {
  EXPECT_FALSE(freed_.ReturnIfGrown(resident_, now_));
  TakeAndFree();
  const uint64_t had = ResidentBytes();
  ASSERT_TRUE(freed_.ReturnIfGrown(had, now_));
  TakeAndFree();
  EXPECT_FALSE(freed_.ReturnIfGrown(had, now_ + FreedMemory::kWorkingSet / 2));
  EXPECT_TRUE(freed_.ReturnIfGrown(2 * had, now_ + FreedMemory::kWorkingSet / 2)) << "it has grown beyond";
  TakeAndFree();
  EXPECT_TRUE(freed_.ReturnIfGrown(2 * had, now_ + 2 * FreedMemory::kWorkingSet)) << "a while ago";
  TakeAndFree();
  EXPECT_TRUE(freed_.ReturnIfGrown(2 * had, now_ + 2 * FreedMemory::kWorkingSet + std::chrono::seconds(1),
                                   FreedMemory::Keeps::kNothing))
      << "a flood";
}

TEST_F(FreedMemoryTest, NothingIsGivenBackWhileLittleIsFree) {
  malloc_trim(0);
  EXPECT_FALSE(freed_.ReturnIfGrown(resident_, now_));
  TakeAndFree(FreedMemory::kLittle / kBlock / 4);
  const bool free = mallinfo2().fordblks >= FreedMemory::kLittle;  // of other tests
  EXPECT_EQ(freed_.ReturnIfGrown(resident_ + 10 * FreedMemory::kGrown, now_ + hours(1)), free);
}
#endif

}  // namespace
}  // namespace regatta::base
