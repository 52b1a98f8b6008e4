// Who may write to a data_dir: one server at a time, and one that slept is told so before it acknowledges anything.
#include "server/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/elapsed.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "log/log_seal.h"
#include "server/journal.h"
#include "server/local_saves.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr LeaseOptions kShort{std::chrono::milliseconds(400)};

// A server in a process of its own, which puts itself to sleep.
class Sleeper {
 public:
  explicit Sleeper(const std::function<bool()>& run) : pid_(fork()) {
    if (pid_ == 0) _exit(run() ? 0 : 1);
  }
  ~Sleeper() {
    if (!ended_) kill(pid_, SIGKILL);
    if (!ended_) waitpid(pid_, nullptr, 0);
  }

  bool Sleeps() const {
    int status = 0;
    return waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  pid_t pid() const { return pid_; }
  // Whether it ended as it should.
  bool Wakes() {
    kill(pid_, SIGCONT);
    int status = 0;
    ended_ = waitpid(pid_, &status, 0) == pid_;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  const pid_t pid_;
  bool ended_ = false;
};

ps::JournalEntry MetEntry(const std::string& name) {
  ps::JournalEntry entry;
  entry.mutable_met()->set_name(name);
  return entry;
}

std::vector<std::string> Names(const Journal& journal) {
  std::vector<std::string> names;
  for (const ps::JournalEntry& entry : journal.entries())
    if (entry.has_met()) names.push_back(entry.met().name());
  return names;
}

TEST(Lease, WhatAServerGaveBackIsTakenAtOnce) {
  base::TestFolder folder;
  const auto start = Clock::now();
  uint64_t term = 0;
  for (int i = 0; i < 3; ++i) {
    auto lease = Lease::Acquire(folder.path(), {});
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_EQ((*lease)->term(), ++term);
    EXPECT_EQ((*lease)->Check(), absl::OkStatus());
    std::ofstream((*lease)->folder() + "/file" + std::to_string(i)) << i;
    for (int j = 0; j <= i; ++j) EXPECT_TRUE(fs::exists((*lease)->folder() + "/file" + std::to_string(j)));
  }
  EXPECT_LT(base::SecondsSince(start), 5);
}

TEST(Lease, OneThatWasKilledIsReplacedAtOnce) {
  base::TestFolder folder;
  {
    Sleeper killed([&] {
      const auto lease = Lease::Acquire(folder.path(), {});
      raise(SIGSTOP);
      return false;
    });
    ASSERT_TRUE(killed.Sleeps());
  }
  const auto start = Clock::now();
  ASSERT_TRUE(Lease::Acquire(folder.path(), {}).ok());
  EXPECT_LT(base::SecondsSince(start), 5);
}

TEST(Lease, OneThatRenewsIsNotReplaced) {
  base::TestFolder folder;
  const auto lease = Lease::Acquire(folder.path(), kShort);
  ASSERT_TRUE(lease.ok());
  const auto second = Lease::Acquire(folder.path(), kShort);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(folder.path()), HasSubstr("process " + std::to_string(getpid()))));
  EXPECT_EQ((*lease)->Check(), absl::OkStatus());
}

TEST(Lease, OfManyWhoComeAtOnceOneGetsIt) {
  for (int round = 0; round < 10; ++round) {
    base::TestFolder folder;
    std::vector<std::unique_ptr<Lease>> held(4);
    std::vector<std::thread> claimants;
    for (auto& lease : held)
      claimants.emplace_back([&] {
        if (auto got = Lease::Acquire(folder.path(), kShort); got.ok()) lease = *std::move(got);
      });
    for (std::thread& claimant : claimants) claimant.join();
    int still = 0;
    for (const auto& lease : held) still += lease != nullptr && lease->Check().ok();
    EXPECT_EQ(still, 1);
  }
}

TEST(Lease, OneThatSleptTooLongLearnsWhoReplacedIt) {
  base::TestFolder folder;
  const pid_t parent = getpid();
  Sleeper sleeper([&] {
    const auto lease = Lease::Acquire(folder.path(), kShort);
    raise(SIGSTOP);
    const absl::Status status = (*lease)->Check();
    return absl::IsUnavailable(status) &&
           std::string(status.message()).find("process " + std::to_string(parent)) != std::string::npos;
  });
  ASSERT_TRUE(sleeper.Sleeps());
  const auto start = Clock::now();
  const auto lease = Lease::Acquire(folder.path(), kShort);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_GE(base::SecondsSince(start), 1.4 * kShort.length.count());
  EXPECT_TRUE(sleeper.Wakes());
  EXPECT_EQ((*lease)->Check(), absl::OkStatus());
}

TEST(Lease, OneThatSleptAndWasNotReplacedGoesOn) {
  base::TestFolder folder;
  Sleeper sleeper([&] {
    const auto lease = Lease::Acquire(folder.path(), kShort);
    raise(SIGSTOP);
    return (*lease)->Check().ok();
  });
  ASSERT_TRUE(sleeper.Sleeps());
  usleep(700'000);
  EXPECT_TRUE(sleeper.Wakes());
}

TEST(Lease, OnAnotherMachineOnlyTheLeaseCounts) {
  base::TestFolder folder;
  const std::string term = Lease::Acquire(folder.path(), kShort).value()->folder();
  std::ofstream(term + "/OWNER") << "host elsewhere\npid 7\nboot 0000000000000001\nlease 0.400\nrenewals 0\n";
  const auto start = Clock::now();
  ASSERT_TRUE(Lease::Acquire(folder.path(), {}).ok());
  EXPECT_GE(base::SecondsSince(start), 0.5);
}

TEST(Lease, AFolderThatIsRemovedServesNoMore) {
  base::TestFolder folder;
  const auto lease = Lease::Acquire(folder.path(), kShort).value();
  fs::remove_all(lease->folder());
  EXPECT_EQ(lease->Check().code(), absl::StatusCode::kUnavailable);
}

TEST(Lease, AFolderOfAnEarlierVersionIsRefused) {
  base::TestFolder folder;
  fs::create_directories(folder.path() + "/log");
  EXPECT_EQ(Lease::Acquire(folder.path(), {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

// The sleeper wakes in the middle of a write: it goes nowhere, and is not acknowledged.
TEST(Lease, WhatASleeperWritesIsNeverRead) {
  for (const char* where : {"log.write=stop@3", "journal.written=stop@3"}) {
    base::TestFolder folder;
    const bool written = std::string(where).starts_with("journal");
    Sleeper sleeper([&] {
      if (!base::ArmFailpoints(where).ok()) return false;
      auto journal = Journal::Open(folder.path(), kShort);
      ps::JournalEntry job;
      job.mutable_job()->set_protocol(1);
      if (!journal.ok() || !(*journal)->Write(job).ok()) return false;
      if (!(*journal)->Write(MetEntry("before")).ok()) return false;
      const bool fenced = absl::IsUnavailable((*journal)->Write(MetEntry("asleep")));
      return fenced && !(*journal)->Write(MetEntry("after")).ok() && !(*journal)->End().ok();
    });
    ASSERT_TRUE(sleeper.Sleeps()) << where;
    std::vector<std::string> expected;
    {
      auto journal = Journal::Open(folder.path(), kShort);
      ASSERT_TRUE(journal.ok()) << where << ": " << journal.status();
      expected = Names(**journal);
      if (written) {
        EXPECT_EQ(expected, (std::vector<std::string>{"before", "asleep"})) << "not acknowledged, yet there";
      }
      EXPECT_TRUE(sleeper.Wakes()) << where;
      ASSERT_EQ((*journal)->Write(MetEntry("successor")), absl::OkStatus());
      expected.push_back("successor");
    }
    const auto again = Journal::Open(folder.path(), kShort);
    ASSERT_TRUE(again.ok()) << where << ": " << again.status();
    EXPECT_EQ(Names(**again), expected) << where;
  }
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

// The umask of a process of its own.
TEST(Lease, TheFolderIsForItsUserAloneWhateverTheUmask) {
  base::TestFolder folder;
  fs::create_directory(folder / "wide");
  fs::permissions(folder / "wide", fs::perms::all);
  fs::create_directory(folder / "shared");
  fs::permissions(folder / "shared", fs::perms::all);
  std::ofstream(folder / "shared/other") << "of somebody else";
  const pid_t child = fork();
  if (child == 0) {
    umask(0);
    for (const char* name : {"new/deep", "wide", "shared"})
      if (!Journal::Open(folder / name, {}, 0).ok()) _exit(1);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (const char* name : {"new/deep", "new/deep/term-1", "wide", "wide/term-1", "shared/term-1"})
    EXPECT_EQ(ModeOf(folder / name), 0700u) << name;
  EXPECT_EQ(ModeOf(folder / "shared"), 0777u);  // it holds what is none of a server's
}

TEST(Lease, APlantedLinkIsNotFollowed) {
  base::TestFolder folder;
  std::ofstream(folder / "precious") << "precious";
  fs::create_directories(folder / "data/term-3");
  fs::create_symlink(folder / "precious", folder / "data/term-3/OWNER");
  const auto lease = Lease::Acquire(folder / "data", kShort);
  EXPECT_THAT(std::string(lease.status().message()), HasSubstr("OWNER is not a regular file (a symbolic link)"));
  fs::remove(folder / "data/term-3/OWNER");
  fs::create_symlink(folder / "precious", folder / ("data/term-3/OWNER." + std::to_string(getpid())));
  EXPECT_TRUE(Lease::Acquire(folder / "data", kShort).ok());
  EXPECT_EQ(base::ReadFile(folder / "precious").value(), "precious");
}

// Everything below `folder`: paths, modes and bytes.
std::vector<std::string> ContentsOf(const std::string& folder) {
  std::vector<std::string> contents{absl::StrCat(folder, " ", ModeOf(folder))};
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    contents.push_back(absl::StrCat(entry.path().string(), " ", ModeOf(entry.path().string()), " ",
                                    entry.is_regular_file() ? base::ReadFile(entry.path().string()).value() : ""));
  std::sort(contents.begin(), contents.end());
  return contents;
}

// A folder of somebody else's that looks like a term, with a checkpoint of which a part was left by a killed writer.
std::string MakeElsewhere(const base::TestFolder& folder) {
  const std::string elsewhere = folder / "elsewhere";
  EXPECT_TRUE(Journal::Open(elsewhere, kShort, 0).ok());
  fs::create_directories(elsewhere + "/term-1/checkpoint/1.saving");
  std::ofstream(elsewhere + "/term-1/checkpoint/1.saving/precious") << "precious";
  fs::permissions(elsewhere + "/term-1", fs::perms(0755));
  return elsewhere;
}

TEST(Lease, AFolderOfADataDirThatIsALinkIsRefused) {
  base::TestFolder folder;
  const std::string elsewhere = MakeElsewhere(folder);
  const auto before = ContentsOf(elsewhere);
  const std::pair<const char*, std::string> links[] = {{"term-3", elsewhere + "/term-1"},
                                                       {"term-3", folder / "nowhere"},
                                                       {"term-3/log", elsewhere + "/term-1/log"},
                                                       {"term-3/log", folder / "nowhere"}};
  for (const auto& [name, target] : links) {
    const std::string data_dir = folder / "data";
    fs::create_directories(fs::path(data_dir + "/" + name).parent_path());
    fs::create_directory_symlink(target, data_dir + "/" + name);
    const absl::Status refused = Journal::Open(data_dir, kShort, 0).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << name << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is not a folder (a symbolic link): remove it")) << name;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(data_dir + "/term-")) << name;
    EXPECT_EQ(ContentsOf(elsewhere), before) << name;
    EXPECT_FALSE(fs::exists(folder / "nowhere"));
    fs::remove_all(data_dir);
  }
}

TEST(Lease, ATermThatIsNoFolderIsRefused) {
  base::TestFolder folder;
  fs::create_directory(folder / "data");
  std::ofstream(folder / "data/term-3") << "precious";
  const absl::Status refused = Lease::Acquire(folder / "data", kShort).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("data/term-3 is not a folder (a file): remove it"));
}

TEST(Lease, ALogIsNotSealedThroughALink) {
  base::TestFolder folder;
  const std::string elsewhere = MakeElsewhere(folder);
  fs::create_directory(folder / "term-1");
  fs::create_directory_symlink(elsewhere + "/term-1/log", folder / "term-1/log");
  const auto before = ContentsOf(elsewhere);
  EXPECT_EQ(log::SealLogs(folder / "term-1/log").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ContentsOf(elsewhere), before);
}

TEST(Lease, OlderTermsAreRemovedAndNotWhatTheyLinkTo) {
  base::TestFolder folder;
  const std::string elsewhere = MakeElsewhere(folder);
  const auto before = ContentsOf(elsewhere);
  fs::create_directories(folder / "data/term-3");
  fs::create_directories(folder / "data/term-2");
  fs::create_directory_symlink(elsewhere, folder / "data/term-1");
  fs::create_directory_symlink(elsewhere, folder / "data/term-2/log");
  ASSERT_TRUE(Lease::Acquire(folder / "data", kShort).ok());
  for (const char* name : {"data/term-1", "data/term-2"}) EXPECT_FALSE(fs::exists(folder / name)) << name;
  EXPECT_EQ(ContentsOf(elsewhere), before);
}

TEST(Lease, SavesThatAreALinkAreRefused) {
  base::TestFolder folder;
  const std::string elsewhere = MakeElsewhere(folder);
  const auto before = ContentsOf(elsewhere);
  fs::create_directory_symlink(elsewhere + "/term-1/checkpoint", folder / "checkpoint");
  const LocalSaves saves(folder.path());
  for (const absl::Status& refused : {saves.List().status(), saves.Remove(1)})
    EXPECT_THAT(std::string(refused.message()), HasSubstr("/checkpoint is not a folder (a symbolic link): remove it"));
  EXPECT_EQ(ContentsOf(elsewhere), before);
  fs::remove(folder / "checkpoint");
  fs::create_directory(folder / "checkpoint");
  fs::create_directory_symlink(elsewhere, folder / "checkpoint/7");
  EXPECT_THAT(std::string(saves.List().status().message()), HasSubstr("/checkpoint/7 is not a folder"));
  EXPECT_EQ(saves.RemoveAll(), absl::OkStatus());
  EXPECT_FALSE(fs::exists(folder / "checkpoint"));
  EXPECT_EQ(ContentsOf(elsewhere), before);
}

}  // namespace
}  // namespace regatta::server
