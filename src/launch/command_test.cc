#include "launch/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace regatta::launch {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/command_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    for (const char* name : {"python3", "tool"}) {
      std::ofstream(folder_ + "/" + name) << "#!/bin/sh\n";
      fs::permissions(folder_ + "/" + name, fs::perms::owner_all);
    }
    std::ofstream(folder_ + "/s.py") << "";
  }
  void TearDown() override { fs::remove_all(folder_); }

  absl::StatusOr<std::vector<std::string>> Resolve(const std::vector<std::string>& words) const {
    return ResolveCommand(words, "/bin/regatta", "/nonexistent:" + folder_);
  }
  std::string folder_;
};

TEST_F(CommandTest, VerbsConfigurationsScriptsAndPrograms) {
  EXPECT_THAT(Resolve({"train", "-m", "c.yaml"}).value(), ElementsAre("/bin/regatta", "train", "-m", "c.yaml"));
  EXPECT_THAT(Resolve({"c.yaml", "-o", "k=v"}).value(),
              ElementsAre("/bin/regatta", "train", "-m", "c.yaml", "-o", "k=v"));
  EXPECT_THAT(Resolve({folder_ + "/s.py", "-m", "x"}).value(),
              ElementsAre(folder_ + "/python3", "-u", folder_ + "/s.py", "-m", "x"));
  EXPECT_THAT(Resolve({"tool", "train"}).value(), ElementsAre(folder_ + "/tool", "train"));
  EXPECT_THAT(Resolve({folder_ + "/tool"}).value(), ElementsAre(folder_ + "/tool"));
}

TEST_F(CommandTest, VerbsWithoutAPlaceInAJobAreRefused) {
  for (const char* verb : {"infer", "pserver"}) {
    std::ofstream(folder_ + "/" + verb) << "#!/bin/sh\n";
    fs::permissions(folder_ + "/" + verb, fs::perms::owner_all);
    const std::string error(Resolve({verb, "-m", "c.yaml"}).status().message());
    EXPECT_THAT(error, HasSubstr(std::string("cannot launch ") + verb));
    EXPECT_THAT(error, HasSubstr(std::string("regatta ") + verb));  // what to do instead
    EXPECT_TRUE(Resolve({folder_ + "/" + verb}).ok()) << "a program of that name";
  }
}

TEST_F(CommandTest, WhatCannotRunIsSaid) {
  EXPECT_THAT(std::string(Resolve({"trian"}).status().message()), HasSubstr("'trian'"));
  EXPECT_THAT(std::string(Resolve({"./nothing"}).status().message()), HasSubstr("no such file"));
  EXPECT_THAT(std::string(Resolve({folder_ + "/nothing.py"}).status().message()), HasSubstr("no such file"));
  fs::permissions(folder_ + "/tool", fs::perms::owner_read);
  EXPECT_THAT(std::string(Resolve({folder_ + "/tool"}).status().message()), HasSubstr("chmod +x"));
  EXPECT_FALSE(Resolve({folder_}).ok());
}

}  // namespace
}  // namespace regatta::launch
