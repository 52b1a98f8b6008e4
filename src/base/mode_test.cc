#include "base/mode.h"

#include <gtest/gtest.h>

#include "base/job_policy.h"

namespace regatta::base {
namespace {

// Configurations, the wire and data_dirs of earlier versions have these names.
TEST(Mode, NamesStayAsTheyArePersisted) {
  EXPECT_EQ(ModeNamed("async"), Mode::kAsync);
  EXPECT_EQ(ModeNamed("sync"), Mode::kSync);
  EXPECT_EQ(ModeNamed("half_async"), Mode::kHalfAsync);
  EXPECT_EQ(ModeNamed("geo"), Mode::kGeo);
  EXPECT_EQ(ModeNamed("gpubox"), std::nullopt);
  for (const ModeTraits& traits : kModes) EXPECT_EQ(ModeNamed(Name(traits.mode)), traits.mode);
}

TEST(Mode, OnlySyncMakesStepsTogetherAndOnlyGeoSendsDifferences) {
  for (const ModeTraits& traits : kModes) {
    EXPECT_EQ(traits.steps_together(), traits.mode == Mode::kSync) << traits.name;
    EXPECT_EQ(traits.sends_differences(), traits.mode == Mode::kGeo) << traits.name;
    EXPECT_EQ(traits.short_rows, traits.mode != Mode::kGeo) << traits.name;
  }
}

TEST(JobPolicy, NamesStayAsTheyArePersisted) {
  EXPECT_STREQ(Name(Ack::kMemory), "memory");
  EXPECT_STREQ(Name(Ack::kLogged), "logged");
  EXPECT_STREQ(Name(Ack::kSynced), "synced");
  EXPECT_STREQ(Name(LossPolicy::kFail), "fail");
  EXPECT_STREQ(Name(LossPolicy::kShrink), "shrink");
  EXPECT_STREQ(Name(LossPolicy::kAwait), "await");
  EXPECT_EQ(ValueIn(kLossPolicies, "await"), LossPolicy::kAwait);
  EXPECT_EQ(ValueIn(kLossPolicies, "auto"), std::nullopt);
}

}  // namespace
}  // namespace regatta::base
