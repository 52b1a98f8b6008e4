#include "comm/geo_schedule.h"

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

TEST(GeoSchedule, APassHasAtLeastTenRoundsHoweverLongItIs) {
  for (const uint64_t longest : {1u, 3u, 400u, 1'000'000u}) {
    GeoSchedule schedule(longest);
    uint64_t since = 0;
    for (uint64_t batch = 1; batch <= 20'000; ++batch) {
      ++since;
      if (schedule.Add()) {
        EXPECT_LE(since, longest);
        since = 0;
      }
      if (batch >= 10) {
        ASSERT_GE(schedule.begun(), 10u) << batch << " batches, at most " << longest << " a round";
      }
    }
  }
}

TEST(GeoSchedule, RoundsGrowUpToTheLongest) {
  GeoSchedule schedule(400);
  uint64_t last = 0, longest = 0;
  for (uint64_t batch = 1; batch <= 10'000; ++batch) {
    if (!schedule.Add()) continue;
    EXPECT_GE(batch - last, longest);
    longest = batch - last;
    last = batch;
  }
  EXPECT_EQ(longest, 400u);
  EXPECT_LT(schedule.whole(), 100u);
}

TEST(GeoSchedule, APassThatGoesOnIsDividedAsIfItHadNotStopped) {
  for (const uint64_t before : {0u, 1u, 10u, 12u, 13u, 500u, 5'000u}) {
    GeoSchedule whole(400), goes_on(400);
    for (uint64_t batch = 0; batch < before; ++batch) whole.Add();
    goes_on.Restart(3);
    goes_on.Restart(before);
    EXPECT_EQ(goes_on.whole(), whole.whole()) << before;
    EXPECT_EQ(goes_on.begun(), whole.begun()) << before;
    for (int batch = 0; batch < 1'000; ++batch) ASSERT_EQ(goes_on.Add(), whole.Add()) << before << " and " << batch;
  }
}

}  // namespace
}  // namespace regatta::comm
