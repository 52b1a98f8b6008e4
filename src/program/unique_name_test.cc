#include "program/unique_name.h"

#include <gtest/gtest.h>

namespace regatta::program {
namespace {

TEST(NameGenerator, CountsEveryKeyFromZero) {
  NameGenerator names;
  EXPECT_EQ(names.Generate("fc"), "fc_0");
  EXPECT_EQ(names.Generate("fc_0.w"), "fc_0.w_0");
  EXPECT_EQ(names.Generate("fc"), "fc_1");
  EXPECT_EQ(names.Generate("_generated_var"), "_generated_var_0");
}

TEST(NameGenerator, PutsItsPrefixBeforeEveryName) {
  NameGenerator names("server_");
  EXPECT_EQ(names.Generate("fc"), "server_fc_0");
}

}  // namespace
}  // namespace regatta::program
