#include "base/guarded_run.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace regatta::base {
namespace {

TEST(RunGuarded, GivesTheProgramsExitCode) {
  EXPECT_EQ(RunGuarded([](int argc, char**) { return argc; }, 7, nullptr), 7);
}

TEST(RunGuarded, WhatIsThrownEndsTheProgramWithAMessage) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunGuarded([](int, char**) -> int { throw std::bad_alloc(); }, 0, nullptr), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "regatta: error: there is not enough memory\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunGuarded([](int, char**) -> int { throw std::runtime_error("bad \x1b[2J"); }, 0, nullptr), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "regatta: error: bad \\x1b[2J\n");
}

}  // namespace
}  // namespace regatta::base
