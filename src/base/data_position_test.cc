#include "base/data_position.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace regatta::base {
namespace {

TEST(DataPosition, StartsEmpty) {
  const DataPosition position;
  EXPECT_FALSE(position.Contains(0));
  EXPECT_FALSE(position.Contains(63));
  EXPECT_FALSE(position.Contains(1000));
}

TEST(DataPosition, BatchesInOrderMoveTheLowMark) {
  DataPosition position;
  for (uint64_t batch = 0; batch < 200; ++batch) {
    position.Add(batch);
    EXPECT_EQ(position.low, batch + 1);
    EXPECT_EQ(position.window, 0u);
  }
}

TEST(DataPosition, HolesStayUntilTheyAreFilled) {
  DataPosition position;
  for (uint64_t batch = 1; batch < 64; ++batch) position.Add(batch);
  EXPECT_EQ(position.low, 0u);
  EXPECT_FALSE(position.Contains(0));
  EXPECT_TRUE(position.Contains(63));
  EXPECT_FALSE(position.Contains(64));
  position.Add(0);
  EXPECT_EQ(position.low, 64u);
  EXPECT_EQ(position.window, 0u);
}

TEST(DataPosition, AWindowOfAnyWidthStaysUntilItsHoleIsFilled) {
  for (const uint64_t width : {64u, 65u, 128u, 129u, 1000u, 4096u}) {
    DataPosition position{.pass = 2, .low = 7};
    for (uint64_t i = width - 1; i > 0; --i) {
      ASSERT_TRUE(position.Fits(7 + i));
      position.Add(7 + i);
    }
    EXPECT_EQ(position.low, 7u);
    EXPECT_EQ(position.batches(), 7 + width - 1);
    EXPECT_EQ(position.beyond.size(), (width - 1) / 64);
    EXPECT_FALSE(position.Contains(7));
    EXPECT_TRUE(position.Contains(7 + width - 1));
    EXPECT_FALSE(position.Contains(7 + width));
    EXPECT_GE(position.end(), 7 + width);
    position.Add(7);
    EXPECT_EQ(position, (DataPosition{2, 7 + width, 0}));
  }
  EXPECT_FALSE(DataPosition{}.Fits(DataPosition::kWindow));
  EXPECT_FALSE((DataPosition{.low = 7}).Fits(UINT64_MAX));
}

TEST(DataPosition, AgreesWithASetWhateverTheOrder) {
  for (const uint64_t in_flight : {8, 60, 100, 700}) {
    Rng rng(17);
    DataPosition position;
    std::set<uint64_t> done;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t batch = position.low + rng.Below(in_flight);
      position.Add(batch);
      done.insert(batch);
      ASSERT_EQ(position.batches(), done.size());
      ASSERT_TRUE(position.beyond.empty() || position.beyond.back() != 0);
      ASSERT_LT(*done.rbegin(), position.end());
      for (uint64_t b = position.low > 4 ? position.low - 4 : 0; b < position.low + in_flight + 70; ++b)
        ASSERT_EQ(position.Contains(b), done.contains(b)) << b;
    }
  }
}

TEST(DataPosition, AddingTwiceChangesNothing) {
  DataPosition position;
  position.Add(0);
  position.Add(5);
  const DataPosition before = position;
  position.Add(5);
  position.Add(0);
  EXPECT_EQ(position, before);
}

TEST(DataPosition, WhatTwoHaveInCommon) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const uint64_t in_flight = round % 2 == 0 ? 20 : 200;
    DataPosition a{3, 0, 0}, b{3, 0, 0};
    for (DataPosition* position : {&a, &b})
      for (uint64_t i = rng.Below(300); i > 0; --i) position->Add(position->low + rng.Below(in_flight));
    const DataPosition common = a.Common(b);
    EXPECT_EQ(common, b.Common(a));
    EXPECT_EQ(common.pass, 3u);
    for (uint64_t batch = 0; batch < 500; ++batch)
      ASSERT_EQ(common.Contains(batch), a.Contains(batch) && b.Contains(batch)) << batch;
  }
}

}  // namespace
}  // namespace regatta::base
