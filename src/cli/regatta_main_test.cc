// Runs the built `regatta` as a user does.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string text;  // stdout and stderr
};

Outcome Shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(absl::StrCat(command, " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  size_t n = 0;
  while ((n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) outcome.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class RegattaMain : public testing::Test {
 protected:
  void SetUp() override {
    const char* bin = getenv("REGATTA_BIN");
    if (bin == nullptr || !fs::exists(absl::StrCat(bin, "/regatta"))) GTEST_SKIP() << "REGATTA_BIN is not set";
    folder_ = testing::TempDir() + "/regatta_main_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    // A copy, so that the test chooses what stands beside it.
    fs::copy_file(absl::StrCat(bin, "/regatta"), absl::StrCat(folder_, "/regatta"));
    regatta_ = absl::StrCat(folder_, "/regatta");
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string folder_;
  std::string regatta_;
};

TEST_F(RegattaMain, VersionTellsWhatItWasCompiledWith) {
  const Outcome out = Shell(absl::StrCat(regatta_, " version"));
  EXPECT_EQ(out.code, 0);
  EXPECT_TRUE(absl::StartsWith(out.text, "Regatta ")) << out.text;
  EXPECT_TRUE(absl::StrContains(out.text, ", compiled with\n    with_avx: ")) << out.text;
  for (const char* word : {"with_gpu: OFF\n", "with_double: OFF\n", "with_python: OFF\n", "with_rdma: OFF\n",
                           "with_timer: ", "commit: ", "compiler: ", "libtorch: "})
    EXPECT_TRUE(absl::StrContains(out.text, word)) << word;
}

TEST_F(RegattaMain, AloneAndHelpTeach) {
  for (const char* arguments : {"", " --help"}) {
    const Outcome out = Shell(regatta_ + arguments);
    EXPECT_EQ(out.code, 0);
    EXPECT_TRUE(absl::StrContains(out.text, "regatta train -m models/rank/dnn/config.yaml")) << out.text;
  }
}

TEST_F(RegattaMain, WrongUsageIsExit2AndNamesTheNearest) {
  const Outcome typo = Shell(absl::StrCat(regatta_, " trian -m x"));
  EXPECT_EQ(typo.code, 2);
  EXPECT_TRUE(absl::StrContains(typo.text, "did you mean train?")) << typo.text;
  EXPECT_EQ(Shell(absl::StrCat(regatta_, " --nonsense")).code, 2);
  EXPECT_EQ(Shell(absl::StrCat(regatta_, " version extra")).code, 2);
}

TEST_F(RegattaMain, AMissingWorkerSaysWhatToDo) {
  const Outcome out = Shell(absl::StrCat(regatta_, " train -m c.yaml"));
  EXPECT_EQ(out.code, 2);
  EXPECT_TRUE(absl::StrContains(out.text, absl::StrCat(folder_.substr(folder_.rfind('/')), "/regatta-train")))
      << out.text;
}

TEST_F(RegattaMain, WorkerVerbsPassTheirArgumentsVerbatim) {
  const std::string worker = absl::StrCat(folder_, "/regatta-train");
  std::ofstream(worker) << "#!/bin/sh\nfor a in \"$@\"; do echo \"<$a>\"; done\nexit 7\n";
  fs::permissions(worker, fs::perms::owner_all);
  const std::string link = absl::StrCat(folder_, "/elsewhere");
  fs::create_directory(link);
  fs::create_symlink(regatta_, absl::StrCat(link, "/r"));
  const Outcome out = Shell(absl::StrCat("cd / && ", link, "/r infer -m 'a b.yaml' -o k='x=y' --is_cloud=1 ''"));
  EXPECT_EQ(out.code, 7);
  EXPECT_EQ(out.text, "<infer>\n<-m>\n<a b.yaml>\n<-o>\n<k=x=y>\n<--is_cloud=1>\n<>\n");
}

TEST_F(RegattaMain, KeysNeedNoWorker) {
  const Outcome out = Shell(absl::StrCat(regatta_, " config --keys"));
  EXPECT_EQ(out.code, 0);
  EXPECT_TRUE(absl::StrContains(out.text, "| runner.epochs | integer")) << out.text;
}

}  // namespace
}  // namespace regatta::cli
