#include "data/source/pipe_source.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "data/dataset_factory.h"
#include "data/source/child_process.h"

namespace regatta::data {
namespace {

using Clock = std::chrono::steady_clock;

class PipeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/pipe.XXXXXX";
    folder_ = mkdtemp(name.data());
    options_.schema.sparse_slots = {"1"};
    options_.batch_size = 100;
    options_.working_folder = folder_;
  }
  void TearDown() override { EXPECT_TRUE(base::RemoveTree(folder_).ok()); }

  void AddFile(const std::string& name, int lines) {
    std::ofstream file(folder_ + "/" + name);
    for (int i = 0; i < lines; ++i) file << "1 " << i % 2 << " 1 " << i << "\n";
    options_.files.push_back(folder_ + "/" + name);
  }
  // The number of samples, or the error.
  absl::StatusOr<int> Read(const std::string& command) {
    options_.pipe_command = command;
    ASSIGN_OR_RETURN(auto dataset, MakeDataset(options_));
    RETURN_IF_ERROR(dataset->BeginPass({}));
    int samples = 0;
    while (true) {
      ASSIGN_OR_RETURN(auto batch, dataset->Next());
      if (batch == nullptr) break;
      samples += batch->size;
    }
    RETURN_IF_ERROR(dataset->EndPass());
    return samples;
  }
  void ExpectError(const std::string& command, const std::string& part) {
    const std::string message(Read(command).status().message());
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find(command), std::string::npos) << message;
    EXPECT_NE(message.find(options_.files[0]), std::string::npos) << message;
  }

  std::string folder_;
  DatasetOptions options_;
};

TEST_F(PipeTest, ReadsWhatTheCommandPrints) {
  AddFile("a", 30'000);
  AddFile("b", 20'000);
  for (int readers : {1, 3}) {
    options_.readers = readers;
    EXPECT_EQ(Read("cat").value(), 50'000);
    EXPECT_EQ(Read("awk '{ print $0 }'").value(), 50'000);
  }
  EXPECT_EQ(Read("grep -v ' 1 1$'").value(), 50'000 - 2);
}

TEST_F(PipeTest, RunsInTheWorkingFolderWithOrWithoutAShell) {
  AddFile("a", 10);
  std::ofstream(folder_ + "/script.sh") << "cat | sed 's/1 1 /1 0 /'\n";
  EXPECT_EQ(Read("sh script.sh").value(), 10);
  options_.pipe_shell = PipeShell::kYes;
  EXPECT_EQ(Read("cat | cat").value(), 10);
  options_.pipe_shell = PipeShell::kNo;
  ExpectError("cat | cat", "exited with status 1");
}

TEST_F(PipeTest, FailuresNameTheCommandAndTheFile) {
  AddFile("a", 10);
  ExpectError("no-such-command --flag", "cannot start no-such-command: No such file or directory");
  ExpectError("no-such-command --flag", "an empty pipe_command uses the built-in parser");
  ExpectError("false", "exited with status 1");
  ExpectError("sh -c 'cat; echo oh no >&2; exit 3'", "exited with status 3; its stderr:\noh no");
  ExpectError("sh -c 'kill -9 $$'", "was killed by signal 9");
  EXPECT_EQ(Read("cat 'open").status().message(), "pipe_command: a quote stays open: cat 'open");
}

TEST_F(PipeTest, EndingBeforeTheInputIsReadIsAnError) {
  AddFile("a", 200'000);
  ExpectError("head -n 5", "ended before it had read its input");
}

TEST_F(PipeTest, AHangingCommandIsKilledWithItsChildren) {
  AddFile("a", 10);
  options_.pipe_timeout_seconds = 0.3;
  const auto start = Clock::now();
  ExpectError("sh -c 'sleep 1000 & echo $! > child; wait'",
              "neither read nor printed anything for 0.3 s and was killed");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
  const pid_t child = std::stoi(base::ReadFile(folder_ + "/child").value());
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  auto alive = [child] {
    auto stat = base::ReadFile("/proc/" + std::to_string(child) + "/stat");
    return stat.ok() && stat->find(") Z") == std::string::npos;
  };
  while (alive() && Clock::now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(alive());
}

TEST_F(PipeTest, EndPassKillsARunningCommand) {
  AddFile("a", 10);
  options_.pipe_command = "sleep 1000";
  auto dataset = MakeDataset(options_).value();
  const auto start = Clock::now();
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  EXPECT_TRUE(dataset->EndPass().ok());
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
}

TEST_F(PipeTest, GarbageIsBadLines) {
  AddFile("a", 10);
  ExpectError("sed s/^/garbage/", ":1: slot 'click': expected a number of values, found 'garbage1'");
  options_.pipe_shell = PipeShell::kYes;
  EXPECT_EQ(Read("cat; echo more garbage").value(), 10);
}

TEST(SplitWords, SplitsAsAShellDoes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(SplitWords("python  reader.py\t-v").value(), Words({"python", "reader.py", "-v"}));
  EXPECT_EQ(SplitWords("a 'b  c' \"d \\\" e\" f\\ g '' x'y'z").value(),
            Words({"a", "b  c", "d \" e", "f g", "", "xyz"}));
  EXPECT_FALSE(SplitWords("  ").ok());
  EXPECT_FALSE(SplitWords("a \"b").ok());
}

}  // namespace
}  // namespace regatta::data
