#include "metrics/rate.h"

#include <gtest/gtest.h>

namespace regatta::metrics {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Rate, IsTheIncreaseOfTheLastTenSeconds) {
  Rate rate;
  const Rate::Clock::time_point start;
  EXPECT_EQ(rate.PerSecond(), 0);
  rate.Update(100, start);
  EXPECT_EQ(rate.PerSecond(), 0);
  rate.Update(300, start + seconds(2));
  EXPECT_EQ(rate.PerSecond(), 100);
  for (int s = 3; s <= 40; ++s) rate.Update(300 + 10 * static_cast<uint64_t>(s - 2), start + seconds(s));
  EXPECT_EQ(rate.PerSecond(), 10);  // the fast beginning is forgotten
}

TEST(Rate, ThingsInBetweenCostNothing) {
  Rate rate;
  const Rate::Clock::time_point start;
  for (int i = 0; i <= 100; ++i) rate.Update(static_cast<uint64_t>(i), start + milliseconds(100 * i));
  EXPECT_NEAR(rate.PerSecond(), 10, 1e-9);
}

TEST(Rate, AStandstillIsSeen) {
  Rate rate;
  const Rate::Clock::time_point start;
  rate.Update(0, start);
  rate.Update(50, start + seconds(1));
  for (int s = 2; s <= 20; ++s) rate.Update(50, start + seconds(s));
  EXPECT_EQ(rate.PerSecond(), 0);
}

}  // namespace
}  // namespace regatta::metrics
