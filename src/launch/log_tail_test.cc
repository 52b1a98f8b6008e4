#include "launch/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace regatta::launch {
namespace {

class LogTail : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/log_tail_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string After(const std::string& bytes, int lines = 3) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return LastLines(path_, lines, "> ");
  }
  std::string folder_, path_;
};

TEST_F(LogTail, ShowsTheEndOnly) {
  EXPECT_EQ(After("a\nb\nc\nd\n"), "> b\n> c\n> d\n");
  EXPECT_EQ(After("a\nb"), "> a\n> b\n");
  EXPECT_EQ(After("a\n\nb\n\n\n"), "> a\n> \n> b\n");
  EXPECT_EQ(After(""), "");
  EXPECT_EQ(After("\n\n"), "");
  EXPECT_EQ(LastLines(folder_ + "/none", 3, ""), "");
}

TEST_F(LogTail, IsBoundedWhateverTheLogHolds) {
  std::string long_line(1 << 20, 'x');
  const std::string text = After(long_line);
  EXPECT_LT(text.size(), 9000u);
  EXPECT_THAT(text, testing::StartsWith("> …x"));
  EXPECT_EQ(After(std::string(5, '\0') + "\nend\n"), "> \\x00\\x00\\x00\\x00\\x00\n> end\n");
}

}  // namespace
}  // namespace regatta::launch
