#include "log/push_log.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "base/failpoint.h"
#include "base/testing/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta::log {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Records = std::map<uint64_t, std::string>;

struct Opened {
  std::unique_ptr<PushLog> log;
  Records records;
};

absl::StatusOr<Opened> Open(const LogOptions& options, uint64_t after = 0) {
  Opened opened;
  ASSIGN_OR_RETURN(opened.log, PushLog::Open(options, after, [&](const LogRecord& record) {
                     opened.records[record.index] = std::string(record.body);
                     return absl::OkStatus();
                   }));
  return opened;
}

uint64_t Append(PushLog& log, const std::string& body) {
  const std::string_view view(body);
  const std::string_view parts[] = {view.substr(0, view.size() / 3), view.substr(view.size() / 3)};
  return log.Append(parts).value();
}

std::string Body(uint64_t i) { return absl::StrCat("record ", i, std::string(i * 37 % 211, 'x')); }

std::vector<std::string> Segments(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".log") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Without an fsync.
void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class PushLogTest : public testing::Test {
 protected:
  ~PushLogTest() override { base::ArmFailpoints("").IgnoreError(); }
  // Records 1 to `count`, in segments of a few each.
  Records Fill(uint64_t count) {
    const Opened opened = Open(options_).value();
    Records records;
    for (uint64_t i = 1; i <= count; ++i) {
      records[i] = Body(i);
      EXPECT_EQ(Append(*opened.log, records[i]), i);
    }
    return records;
  }
  void Corrupt(const std::string& path, uint64_t at) {
    std::string bytes = base::ReadFile(path).value();
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    Put(path, bytes);
  }

  base::TestFolder folder_;
  LogOptions options_{.folder = folder_ / "log", .name = "lane", .segment_bytes = 1000, .boot = 1};
};

TEST_F(PushLogTest, GivesBackWhatWasAppendedOverSegmentsAndOpenings) {
  Records records = Fill(30);
  EXPECT_GT(Segments(options_.folder).size(), 3u);
  auto again = Open(options_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->records, records);
  EXPECT_EQ(Append(*again->log, "more"), 31u);
  again->log.reset();
  records[31] = "more";
  EXPECT_EQ(Open(options_)->records, records);
  EXPECT_EQ(Open(options_, 30)->records, (Records{{31, "more"}}));
}

TEST_F(PushLogTest, ARecordThatAKillCutIsDropped) {
  const Records records = Fill(5);
  const std::string last = Segments(options_.folder).back();
  const std::string bytes = base::ReadFile(last).value();
  const std::string_view body = "this one was being written";
  const std::string whole = FormatRecordHeader(6, 0, {&body, 1}) + std::string(body);
  for (size_t length = 1; length < whole.size(); ++length) {
    Put(last, bytes + whole.substr(0, length));
    auto opened = Open(options_);
    ASSERT_TRUE(opened.ok()) << length << ": " << opened.status();
    EXPECT_EQ(opened->records, records) << length;
    EXPECT_EQ(base::ReadFile(last).value(), bytes) << length;
  }
}

TEST_F(PushLogTest, RecordsThatWereWrittenMayNotBeMissing) {
  Fill(5);
  const std::string last = Segments(options_.folder).back();
  const std::string bytes = base::ReadFile(last).value();
  for (size_t length = 0; length < bytes.size(); ++length) {
    fs::resize_file(last, length);
    const auto opened = Open(options_);
    ASSERT_EQ(opened.status().code(), absl::StatusCode::kDataLoss) << length << ": " << opened.status();
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr("lane-"));
    Put(last, bytes);
  }
}

TEST_F(PushLogTest, AfterAPowerCutTheTailMayBeAnythingButWhatWasSynced) {
  options_.segment_bytes = 1 << 20;
  {
    const Opened opened = Open(options_).value();
    for (uint64_t i = 1; i <= 4; ++i) Append(*opened.log, Body(i));
    ASSERT_TRUE(opened.log->Sync(4).ok());
    for (uint64_t i = 5; i <= 8; ++i) Append(*opened.log, Body(i));
  }
  const std::string path = Segments(options_.folder).front();
  const std::string bytes = base::ReadFile(path).value();
  LogOptions later = options_;
  later.boot = 2;
  uint64_t ends[9] = {SegmentReader::kHeaderBytes};
  for (uint64_t i = 1; i <= 8; ++i) ends[i] = ends[i - 1] + 32 + Body(i).size() + RecordPadding(Body(i).size());
  ASSERT_EQ(ends[8], bytes.size());
  const std::string end = base::ReadFile(options_.folder + "/lane.end").value();
  for (uint64_t at = 0; at < bytes.size(); ++at) {
    Put(options_.folder + "/lane.end", end);
    std::string cut = bytes;
    std::fill(cut.begin() + static_cast<ptrdiff_t>(at), cut.end(), '\0');  // pages that never reached the disk
    Put(path, cut);
    const auto opened = Open(later);
    // Record 5 is the first that knows of the sync.
    if (at < ends[4] && at >= ends[0]) continue;
    if (at < ends[0]) {
      if (cut.compare(0, ends[0], bytes, 0, ends[0]) == 0) continue;  // the checksum ended with a zero
      EXPECT_EQ(opened.status().code(), absl::StatusCode::kDataLoss) << at;
      continue;
    }
    ASSERT_TRUE(opened.ok()) << at << ": " << opened.status();
    for (uint64_t i = 1; i <= 8; ++i) {
      EXPECT_TRUE(ends[i] > at || opened->records.contains(i)) << at << ": " << i;
    }
    for (const auto& [index, body] : opened->records) EXPECT_EQ(body, Body(index));
  }
  // A record that later ones know to be on the disk.
  Put(options_.folder + "/lane.end", end);
  Put(path, bytes);
  {
    const Opened opened = Open(later).value();
    ASSERT_TRUE(opened.log->Sync(8).ok());
    Append(*opened.log, "in a segment of its own");
  }
  Corrupt(path, ends[6] + 40);
  LogOptions latest = options_;
  latest.boot = 3;
  EXPECT_EQ(Open(latest).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PushLogTest, EveryDamageIsFoundOrHarmless) {
  const Records records = Fill(25);
  const std::map<std::string, std::string> files = base::FilesIn(options_.folder);
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int found = 0;
  for (int i = 0; i < 1500; ++i) {
    auto victim = files.begin();
    std::advance(victim, static_cast<ptrdiff_t>(below(files.size())));
    std::string bytes = victim->second;
    const size_t at = below(victim->first == "lane.end" ? 128 : bytes.size());
    switch (below(4)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(at, 1 + below(40));
        break;
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
    }
    Put(options_.folder + "/" + victim->first, bytes);
    const auto opened = Open(options_);
    if (!opened.ok()) {
      EXPECT_EQ(opened.status().code(), absl::StatusCode::kDataLoss) << opened.status();
      ++found;
    } else {
      EXPECT_EQ(opened->records, records) << victim->first << " at " << at;
    }
    for (const auto& [name, original] : files) {
      Put(options_.folder + "/" + name, original);
    }
  }
  EXPECT_GT(found, 1000);
}

TEST_F(PushLogTest, DropsSegmentsThatAreCovered) {
  Records records = Fill(30);
  Opened opened = Open(options_).value();
  const uint64_t before = opened.log->bytes();
  ASSERT_TRUE(opened.log->DropThrough(12).ok());
  EXPECT_LT(opened.log->bytes(), before);
  opened.log.reset();
  records.erase(records.begin(), records.upper_bound(12));
  EXPECT_EQ(Open(options_, 12)->records, records);
  EXPECT_THAT(std::string(Open(options_, 0).status().message()), HasSubstr("are missing"));

  opened = Open(options_, 12).value();
  ASSERT_TRUE(opened.log->DropThrough(30).ok());
  EXPECT_EQ(opened.log->bytes(), SegmentReader::kHeaderBytes);
  EXPECT_EQ(Append(*opened.log, "next"), 31u);
  opened.log.reset();
  EXPECT_EQ(Open(options_, 30)->records, (Records{{31, "next"}}));
  fs::remove(Segments(options_.folder).back());
  EXPECT_EQ(Open(options_, 30).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PushLogTest, ASegmentBegunOnPurposeIsWhereWhatComesBeforeIsDropped) {
  Opened opened = Open(options_).value();
  EXPECT_TRUE(opened.log->BeginSegment().ok()) << "there is nothing yet";
  Append(*opened.log, "one");
  Append(*opened.log, "two");
  ASSERT_TRUE(opened.log->BeginSegment().ok());
  ASSERT_TRUE(opened.log->BeginSegment().ok()) << "one is enough";
  EXPECT_EQ(Append(*opened.log, "three"), 3u);
  ASSERT_TRUE(opened.log->DropThrough(2).ok());
  EXPECT_EQ(Segments(options_.folder).size(), 1u);
  opened.log.reset();
  EXPECT_EQ(Open(options_).status().code(), absl::StatusCode::kDataLoss) << "somebody may need the first two";
  options_.headless = true;
  opened = Open(options_).value();
  EXPECT_EQ(opened.records, (Records{{3, "three"}}));
  EXPECT_EQ(Append(*opened.log, "four"), 4u);
  opened.log.reset();
  fs::remove(Segments(options_.folder).back());
  EXPECT_EQ(Open(options_).status().code(), absl::StatusCode::kDataLoss) << "its end is missing";
}

TEST_F(PushLogTest, AFullDiskCostsTheRecordAndNothingElse) {
  Opened opened = Open(options_).value();
  Append(*opened.log, "one");
  ASSERT_TRUE(base::ArmFailpoints("log.write=enospc").ok());
  const std::string_view body = "two";
  EXPECT_EQ(opened.log->Append({&body, 1}).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(base::ArmFailpoints("").ok());
  EXPECT_EQ(Append(*opened.log, "three"), 2u);
  opened.log.reset();
  EXPECT_EQ(Open(options_)->records, (Records{{1, "one"}, {2, "three"}}));
}

TEST_F(PushLogTest, AFailedSyncIsNotForgotten) {
  Opened opened = Open(options_).value();
  Append(*opened.log, "one");
  ASSERT_TRUE(base::ArmFailpoints("log.fsync=error@1").ok());
  EXPECT_FALSE(opened.log->Sync(1).ok());
  EXPECT_FALSE(opened.log->Sync(1).ok()) << "the kernel forgets what it could not write";
  const std::string_view body = "two";
  EXPECT_FALSE(opened.log->Append({&body, 1}).ok());
}

TEST_F(PushLogTest, ManyThreadsAppendAndSync) {
  Opened opened = Open(options_).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const uint64_t index = Append(*opened.log, absl::StrCat(t, " ", i));
        EXPECT_TRUE(i % 10 != 0 || opened.log->Sync(index).ok());
        EXPECT_TRUE(t != 0 || i != 25 || opened.log->DropThrough(index / 2).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened.log->last_index(), 200u);
}

// The child tells by a pipe which records it was promised.
TEST_F(PushLogTest, AKilledProcessLosesNothingThatWasAppended) {
  std::mt19937 random(3);
  uint64_t expected = 0;
  for (int round = 0; round < 20; ++round) {
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto opened = Open(options_);
      if (!opened.ok()) _exit(1);
      while (true) {
        const uint64_t index = Append(*opened->log, Body(opened->log->last_index() + 1));
        if (write(fds[1], &index, sizeof index) != sizeof index) _exit(1);
      }
    }
    close(fds[1]);
    uint64_t index = 0;
    const uint64_t until = expected + 1 + random() % 60;
    while (index < until && read(fds[0], &index, sizeof index) == sizeof index) {
    }
    kill(child, SIGKILL);
    while (read(fds[0], &index, sizeof index) == sizeof index) {
    }
    close(fds[0]);
    waitpid(child, nullptr, 0);
    const auto opened = Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_GE(opened->log->last_index(), index);
    EXPECT_LE(opened->log->last_index(), index + 1);
    for (const auto& [i, body] : opened->records) EXPECT_EQ(body, Body(i));
    expected = opened->log->last_index();
  }
}

TEST(PushLog, WhatIsNoFileIsRefusedAtOnce) {
  base::TestFolder folder;
  { Append(*Open({.folder = folder.path(), .name = "l"})->log, "record"); }
  const std::string path = Segments(folder.path()).at(0);
  for (const std::string& planted : {path, folder / "l.end"}) {
    fs::rename(planted, folder / "aside");
    ASSERT_EQ(mkfifo(planted.c_str(), 0600), 0);
    const auto opened = Open({.folder = folder.path(), .name = "l"});
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(planted + " is not a regular file (a FIFO)"));
    fs::rename(folder / "aside", planted);
  }
  EXPECT_TRUE(Open({.folder = folder.path(), .name = "l"}).ok());
}

TEST(PushLog, APlantedLinkIsNotFollowed) {
  base::TestFolder folder;
  Put(folder / "precious", "precious");
  const std::string log = folder / "log";
  fs::create_directory(log);
  fs::create_symlink(folder / "precious", log + "/l.end.tmp");
  const auto opened = Open({.folder = log, .name = "l"});
  ASSERT_TRUE(opened.ok()) << opened.status();
  // Planted after the look at what is there.
  const std::string segment = log + "/l-00000000000000000001.log";
  fs::create_symlink(folder / "precious", segment);
  Append(*opened->log, "record");
  EXPECT_FALSE(fs::is_symlink(segment));
  EXPECT_EQ(base::ReadFile(folder / "precious").value(), "precious");
}

TEST(PushLog, PlantedLinksAreNotRead) {
  base::TestFolder folder;
  LogOptions options;
  options.folder = folder / "log";
  {
    auto opened = Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    Append(*opened->log, "record");
  }
  for (const std::string& path : {Segments(options.folder).front(), options.folder + "/" + options.name + ".end"}) {
    fs::rename(path, folder / "aside");
    fs::create_symlink(folder / "aside", path);
    const absl::Status refused = Open(options).status();
    EXPECT_THAT(std::string(refused.message()), HasSubstr(path + " is not a regular file (a symbolic link)"));
    fs::rename(folder / "aside", path);
  }
  fs::rename(options.folder, folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", options.folder);
  EXPECT_THAT(std::string(Open(options).status().message()), HasSubstr("/log is not a folder (a symbolic link)"));
}

}  // namespace
}  // namespace regatta::log
