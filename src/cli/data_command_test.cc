#include "cli/data_command.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "base/file.h"

namespace regatta::cli {
namespace {

class DataCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/data_command.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { EXPECT_TRUE(base::RemoveTree(folder_).ok()); }

  // The exit code that main gives; what is printed goes to output_.
  int Run(const std::string& arguments) {
    CLI::App app("regatta");
    int exit_code = 0;
    AddDataCommand(app, exit_code);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      exit_code = app.exit(error) == 0 ? 0 : 2;
    }
    std::fflush(stdout);
    output_ = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    return exit_code;
  }

  std::string folder_, output_;
};

TEST_F(DataCommandTest, GeneratesChecksAndSplits) {
  EXPECT_EQ(Run("data gen --out " + folder_ + " --samples 2000 --test-samples 500 --files 2 --compress gz"), 0);
  EXPECT_NE(output_.find("test: 500 samples"), std::string::npos) << output_;
  EXPECT_NE(output_.find("ceiling (Bayes) auc 0.8"), std::string::npos) << output_;
  EXPECT_TRUE(base::Exists(folder_ + "/ceiling.json"));
  EXPECT_EQ(Run("data check " + folder_ + "/train " + folder_ + "/test"), 0) << output_;
  EXPECT_NE(output_.find("3 files, 2500 good lines, 0 bad lines"), std::string::npos) << output_;
  EXPECT_EQ(Run("data split --count 3 " + folder_ + "/train/part-00000.gz"), 0);
  EXPECT_TRUE(base::Exists(folder_ + "/train/part-00000-00002.gz"));
}

TEST_F(DataCommandTest, CheckReportsBadLines) {
  std::ofstream(folder_ + "/x") << "label:1 idx:5\nlabel:1 idx:-5\nlabel:0 idx:7\n";
  EXPECT_EQ(Run("data check --label label --sparse idx --dense 0 --quarantine " + folder_ + "/q " + folder_ + "/x"), 1);
  EXPECT_NE(output_.find("2 good lines, 1 bad lines"), std::string::npos) << output_;
  EXPECT_NE(base::ReadFile(folder_ + "/q").value().find("/x:2: slot 'idx': expected an id"), std::string::npos);
  EXPECT_EQ(Run("data check " + folder_ + "/missing"), 1);
  EXPECT_NE(output_.find("no file matches"), std::string::npos);
}

TEST_F(DataCommandTest, CheckReadsSeveralLabels) {
  std::ofstream(folder_ + "/x") << "click:1 price:-3.5 idx:5\nclick:2 price:7 idx:6\n";
  const std::string check = "data check --sparse idx --dense 0 ";
  EXPECT_EQ(Run(check + "--label click,price --real-label price --quarantine " + folder_ + "/q " + folder_ + "/x"), 1);
  EXPECT_NE(output_.find("1 good lines, 1 bad lines"), std::string::npos) << output_;
  EXPECT_NE(base::ReadFile(folder_ + "/q").value().find("slot 'click': expected a label from 0 to 1, found '2'"),
            std::string::npos);
  EXPECT_EQ(Run(check + "--no-labels " + folder_ + "/x"), 0) << output_;
  EXPECT_NE(output_.find("2 good lines, 0 bad lines"), std::string::npos) << output_;
}

TEST_F(DataCommandTest, CheckReportsIdsOfSeveralSlots) {
  std::ofstream(folder_ + "/x") << "click:1 a:5 b:6\nclick:0 a:6 b:7\nclick:0 a:5 b:7\n";
  EXPECT_EQ(Run("data check --sparse a,b --dense 0 " + folder_ + "/x"), 0);
  EXPECT_NE(output_.find("1 of 3 distinct ids occur in several slots, such as 6 in b and a."), std::string::npos)
      << output_;
  EXPECT_NE(output_.find("runner.id_space: slot"), std::string::npos) << output_;
  std::ofstream(folder_ + "/y") << "click:1 a:5 b:6\nclick:0 a:5 b:7\n";
  EXPECT_EQ(Run("data check --sparse a,b --dense 0 " + folder_ + "/y"), 0);
  EXPECT_EQ(output_.find("several slots"), std::string::npos) << output_;
}

TEST_F(DataCommandTest, EveryBadLineIsKeptInOrder) {
  std::ofstream file(folder_ + "/x");
  for (int i = 0; i < 3000; ++i) file << "label:1 idx:5\nlabel:1 idx:-" << i + 1 << "\n";
  file.close();
  EXPECT_EQ(Run("data check --label label --sparse idx --dense 0 --quarantine " + folder_ + "/q " + folder_ + "/x"), 1);
  std::ifstream kept(folder_ + "/q");
  std::string line;
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(std::getline(kept, line)) << i;
    EXPECT_TRUE(line.starts_with(folder_ + "/x:" + std::to_string(2 * i + 2) + ": ")) << line;
    EXPECT_TRUE(line.ends_with("label:1 idx:-" + std::to_string(i + 1))) << line;
  }
  EXPECT_FALSE(std::getline(kept, line));
}

TEST_F(DataCommandTest, AnEmptyFileHoldsNoLine) {
  std::ofstream(folder_ + "/empty");
  EXPECT_EQ(Run("data check " + folder_ + "/empty"), 1);
  EXPECT_NE(output_.find("/empty holds no line\n"), std::string::npos) << output_;
}

TEST_F(DataCommandTest, WrongArgumentsExitWith2) {
  EXPECT_EQ(Run("data"), 2);
  EXPECT_EQ(Run("data gen"), 2);
  EXPECT_EQ(Run("data gen --out " + folder_ + " --format parquet"), 2);
  EXPECT_EQ(Run("data gen --out " + folder_ + " --click-rate 7"), 2);
  EXPECT_EQ(Run("data split --count 0 x"), 2);
  EXPECT_EQ(Run("data gen --out /proc/none --samples 10"), 1);
  EXPECT_EQ(Run("data gen --help"), 0);
  EXPECT_NE(output_.find("regatta data gen --out /tmp/criteo"), std::string::npos) << output_;
}

}  // namespace
}  // namespace regatta::cli
