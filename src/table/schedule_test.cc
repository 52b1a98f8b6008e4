#include "table/schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace regatta::table {
namespace {

double RateAt(const ScheduleConfig& config, uint64_t step, double base = 0.1) {
  const auto schedule = Schedule::Create(config);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule->LearningRate(base, step);
}

TEST(Schedule, ConstantStays) {
  EXPECT_DOUBLE_EQ(RateAt({}, 0), 0.1);
  EXPECT_DOUBLE_EQ(RateAt({}, 1'000'000), 0.1);
}

TEST(Schedule, ExponentialDecaysByRateAPeriod) {
  const ScheduleConfig config{.name = "exponential", .decay_steps = 100, .decay_rate = 0.5};
  EXPECT_DOUBLE_EQ(RateAt(config, 0), 0.1);
  EXPECT_DOUBLE_EQ(RateAt(config, 100), 0.05);
  EXPECT_NEAR(RateAt(config, 50), 0.0707106781, 1e-9);
  EXPECT_DOUBLE_EQ(RateAt(config, 200), 0.025);
}

TEST(Schedule, AStaircaseHoldsThroughAPeriod) {
  const ScheduleConfig config{.name = "exponential", .decay_steps = 100, .decay_rate = 0.5, .staircase = true};
  EXPECT_DOUBLE_EQ(RateAt(config, 99), 0.1);
  EXPECT_DOUBLE_EQ(RateAt(config, 100), 0.05);
  EXPECT_DOUBLE_EQ(RateAt(config, 199), 0.05);
}

TEST(Schedule, NaturalExp) {
  const ScheduleConfig config{.name = "natural_exp", .decay_steps = 10, .decay_rate = 0.5};
  EXPECT_NEAR(RateAt(config, 10), 0.0606530660, 1e-9);
  EXPECT_NEAR(RateAt(config, 20), 0.0367879441, 1e-9);
}

TEST(Schedule, InverseTime) {
  const ScheduleConfig config{.name = "inverse_time", .decay_steps = 10, .decay_rate = 0.5};
  EXPECT_DOUBLE_EQ(RateAt(config, 20), 0.05);
  EXPECT_DOUBLE_EQ(RateAt(config, 60), 0.025);
}

TEST(Schedule, PolynomialEndsAtItsEnd) {
  const ScheduleConfig config{.name = "polynomial", .decay_steps = 100, .end_learning_rate = 0.02, .power = 2};
  EXPECT_DOUBLE_EQ(RateAt(config, 0), 0.1);
  EXPECT_DOUBLE_EQ(RateAt(config, 50), 0.04);
  EXPECT_DOUBLE_EQ(RateAt(config, 100), 0.02);
  EXPECT_DOUBLE_EQ(RateAt(config, 5000), 0.02);
}

TEST(Schedule, PiecewiseChangesAtItsBoundaries) {
  const ScheduleConfig config{.name = "piecewise", .boundaries = {10, 20}, .values = {1, 0.5, 0.1}};
  EXPECT_EQ(RateAt(config, 9), 1);
  EXPECT_EQ(RateAt(config, 10), 0.5);
  EXPECT_EQ(RateAt(config, 19), 0.5);
  EXPECT_EQ(RateAt(config, 20), 0.1);
}

TEST(Schedule, NoamRisesThenFalls) {
  const ScheduleConfig config{.name = "noam", .d_model = 64, .warmup_steps = 100};
  EXPECT_NEAR(RateAt(config, 0, 1), 0.125 * 0.001, 1e-12);  // 64^-0.5 · 1 · 100^-1.5
  EXPECT_NEAR(RateAt(config, 99, 1), 0.125 * 0.1, 1e-12);
  EXPECT_NEAR(RateAt(config, 399, 2), 2 * 0.125 * 0.05, 1e-12);
}

TEST(Schedule, CosineReachesItsEnd) {
  ScheduleConfig config{.name = "cosine", .decay_steps = 100};
  EXPECT_DOUBLE_EQ(RateAt(config, 0), 0.1);
  EXPECT_NEAR(RateAt(config, 25), 0.0853553391, 1e-9);
  EXPECT_NEAR(RateAt(config, 50), 0.05, 1e-12);
  EXPECT_NEAR(RateAt(config, 100), 0, 1e-12);
  EXPECT_NEAR(RateAt(config, 170), 0, 1e-12);
}

TEST(Schedule, WarmUpIsLinearInFrontOfAnySchedule) {
  ScheduleConfig config{.name = "constant", .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(RateAt(config, 0), 0.025);
  EXPECT_DOUBLE_EQ(RateAt(config, 3), 0.1);
  EXPECT_DOUBLE_EQ(RateAt(config, 4), 0.1);
  config = {.name = "exponential", .decay_steps = 2, .decay_rate = 0.5, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(RateAt(config, 2), 0.1 * 0.5 * 0.75);
}

TEST(Schedule, SettingsThatCannotBeAreRefusedByName) {
  const auto refused = [](const ScheduleConfig& config, const std::string& word) {
    const auto schedule = Schedule::Create(config);
    ASSERT_FALSE(schedule.ok()) << word;
    EXPECT_NE(schedule.status().message().find(word), std::string::npos) << schedule.status();
  };
  refused({.name = "linear"}, "inverse_time");
  refused({.name = "exponential", .decay_rate = 0.5}, "decay_steps");
  refused({.name = "exponential", .decay_steps = 5, .decay_rate = -1}, "decay_rate");
  refused({.name = "polynomial", .decay_steps = 5, .power = 0}, "power");
  refused({.name = "piecewise", .boundaries = {1}, .values = {1}}, "values");
  refused({.name = "piecewise", .boundaries = {2, 1}, .values = {1, 2, 3}}, "boundaries");
  refused({.name = "noam", .warmup_steps = 5}, "d_model");
  refused({.name = "constant", .warmup_steps = -1}, "warmup_steps");
}

}  // namespace
}  // namespace regatta::table
