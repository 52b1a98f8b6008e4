#include "base/step.h"

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

TEST(DataPosition, AgreesWithASetWhateverTheOrder) {
  Rng rng(17);
  DataPosition position;
  std::set<uint64_t> done;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t batch = position.low + rng.Below(8);  // eight steps in flight
    position.Add(batch);
    done.insert(batch);
    for (uint64_t b = position.low > 4 ? position.low - 4 : 0; b < position.low + 70; ++b)
      ASSERT_EQ(position.Contains(b), done.contains(b)) << b;
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
    DataPosition a{3, 0, 0}, b{3, 0, 0};
    for (DataPosition* position : {&a, &b})
      for (uint64_t i = rng.Below(300); i > 0; --i) position->Add(position->low + rng.Below(20));
    const DataPosition common = a.Common(b);
    EXPECT_EQ(common, b.Common(a));
    EXPECT_EQ(common.pass, 3u);
    for (uint64_t batch = 0; batch < 500; ++batch)
      ASSERT_EQ(common.Contains(batch), a.Contains(batch) && b.Contains(batch)) << batch;
  }
}

}  // namespace
}  // namespace regatta::base
