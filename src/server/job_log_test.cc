// The log in which a server keeps who takes part in its job and the rounds of workers that are over: it stays short,
// and whoever comes back knows what was known, wherever it was killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/failpoint.h"
#include "base/testing/test_folder.h"
#include "server/log_compactor.h"
#include "server/testing/lasting_job.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

bool NeverEnds() { return false; }

Identity LogWorker(int rank, uint64_t incarnation = 7) { return {rank, incarnation, "here"}; }

JobSpec LogSpec(int workers) {
  JobSpec spec;
  spec.workers = workers;
  spec.loss_policy = base::LossPolicy::kAwait;
  spec.tables.dense.rule.name = "sgd";
  spec.tables.dense.parameters = {{"w", {1}, {}}};
  return spec;
}

// A server's life in a folder.
class Life {
 public:
  Life(const std::string& folder, int workers) : opened_(OpenLastingJob(folder, LogSpec(workers))) {
    EXPECT_TRUE(opened_.job.ok()) << opened_.job.status();
    job().roster().SetLives(std::chrono::seconds(0));  // another process takes a place at once
  }
  HostedJob& job() { return **opened_.job; }
  Journal& journal() { return *opened_.journal; }

  // What is known of rounds, in the order in which it is given up.
  using Known = std::vector<std::pair<Rendezvous::RoundKey, Rendezvous::Payloads>>;
  Known known() {
    Known known;
    EXPECT_TRUE(job()
                    .rendezvous()
                    .Hold([&](const Rendezvous::Over& over, const ForgottenRounds&) {
                      for (const auto& [key, payloads] : over) known.emplace_back(key, *payloads);
                      return absl::OkStatus();
                    })
                    .ok());
    return known;
  }
  // A round of the only worker that is expected.
  void AllGather(const std::string& name, uint64_t round, const std::string& payload) {
    EXPECT_EQ(job().rendezvous().AllGather(LogWorker(0), name, round, payload, {}, NeverEnds).status(),
              absl::OkStatus());
  }

 private:
  LastingJob opened_;
};

std::vector<std::string> JobSegments(const std::string& term) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(term + "/log"))
    if (entry.path().filename().string().starts_with("job-")) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

uint64_t BytesOf(const std::vector<std::string>& paths) {
  uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += fs::file_size(path);
  return bytes;
}

// A job of three lives: worker 0 takes part in rounds, worker 1 is done, the place of worker 2 was taken and left.
// Where it was at last; returns what is known.
Life::Known Prepare(const std::string& folder, std::string* term) {
  Life::Known known;
  for (uint64_t life = 0; life < 3; ++life) {
    Life server(folder, 3);
    if (life == 0) {
      for (int rank = 0; rank < 3; ++rank)
        EXPECT_TRUE(server.job().Admit({rank, 7, absl::StrCat("process ", rank)}).ok());
    }
    if (life == 1) {
      EXPECT_EQ(server.job().Admit({2, 8, "another process"}).value(), "process 2");
      server.job().roster().Leave({1, 7, ""});
      server.job().roster().Leave({2, 8, ""});
    }
    if (life == 0) continue;
    for (uint64_t i = 0; i < 40; ++i) server.AllGather(absl::StrCat("once ", life, " ", i), 0, absl::StrCat("o", i));
    for (uint64_t i = 0; i < 20; ++i)
      server.AllGather("often", 20 * (life - 1) + i, absl::StrCat("often ", life, " ", i));
    known = server.known();
    *term = server.journal().folder();
  }
  EXPECT_EQ(JobSegments(*term).size(), 3u);
  return known;
}

void ExpectAsBefore(Life& life, const Life::Known& known) {
  EXPECT_EQ(life.known(), known);
  for (const auto& [key, payloads] : known) {
    const auto again = life.job().rendezvous().AllGather(LogWorker(0), key.first, key.second, "other", {}, NeverEnds);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(**again, payloads) << key.first << ", round " << key.second;
  }
  EXPECT_TRUE(life.job().roster().Expected(0));
  EXPECT_FALSE(life.job().roster().Expected(1));
  EXPECT_EQ(life.job().roster().members()[2].state, MemberState::kDone);
  EXPECT_EQ(life.job().roster().members()[2].predecessor, "process 2");
  EXPECT_EQ(life.job().roster().Check({0, 7, ""}), absl::OkStatus());
}

TEST(JobLog, CompactedItIsShortAndWhoeverComesBackKnowsTheSame) {
  base::TestFolder folder;
  std::string term;
  Life::Known known = Prepare(folder.path(), &term);
  const uint64_t before = BytesOf(JobSegments(term));
  for (int round = 0; round < 3; ++round) {
    Life life(folder.path(), 3);
    ExpectAsBefore(life, known);
    ASSERT_EQ(life.job().CompactJobLog().status(), absl::OkStatus());
    EXPECT_EQ(JobSegments(life.journal().folder()).size(), 1u);
    EXPECT_LT(life.journal().job_bytes(), before);
    ExpectAsBefore(life, known);
    life.AllGather("often", 40 + static_cast<uint64_t>(round), "later");
    life.AllGather(absl::StrCat("later ", round), 0, "later");
    known = life.known();
  }
  Life life(folder.path(), 3);
  ExpectAsBefore(life, known);
}

TEST(JobLog, RoundsThatAreNotKeptAreRefusedAfterRestartsToo) {
  base::TestFolder folder;
  {
    Life life(folder.path(), 1);
    ASSERT_TRUE(life.job().Admit(LogWorker(0)).ok());
    for (int i = 0; i < 400; ++i) life.AllGather(absl::StrCat("barrier ", i), 0, "");
  }
  for (const bool compact : {false, true, true}) {
    Life life(folder.path(), 1);
    Rendezvous& rendezvous = life.job().rendezvous();
    const auto again = [&](int i) {
      return rendezvous.AllGather(LogWorker(0), absl::StrCat("barrier ", i), 0, "", std::chrono::seconds(5), NeverEnds)
          .status()
          .code();
    };
    EXPECT_EQ(again(0), absl::StatusCode::kOk) << "the first are kept";
    EXPECT_EQ(again(50), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(again(399), absl::StatusCode::kOk);
    if (compact) {
      ASSERT_EQ(life.job().CompactJobLog().status(), absl::OkStatus());
    }
    EXPECT_EQ(again(50), absl::StatusCode::kFailedPrecondition);
  }
}

// Between every two steps of it, by a process of its own that ends there as kill -9 would end it.
TEST(JobLog, AKillAnywhereInACompactionLosesNothing) {
  base::TestFolder prepared;
  std::string term;
  const Life::Known known = Prepare(prepared.path(), &term);
  for (const std::string point : {"log.segment", "log.write", "journal.compact", "journal.compacted", "log.fsync",
                                  "journal.synced", "log.drop", "journal.dropped"}) {
    int kills = 0;
    for (int hit = 1;; hit += point == "log.write" ? 7 : 1) {
      base::TestFolder folder;
      fs::copy(prepared.path(), folder.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
      const pid_t child = fork();
      if (child == 0) {
        LastingJob opened = OpenLastingJob(folder.path(), LogSpec(3));
        if (!opened.job.ok() || !base::ArmFailpoints(absl::StrCat(point, "=crash@", hit)).ok()) _exit(2);
        _exit((*opened.job)->CompactJobLog().ok() ? 0 : 3);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      const bool killed = WIFSIGNALED(status);
      ASSERT_TRUE(killed || WEXITSTATUS(status) == 0) << point << "@" << hit << ": " << WEXITSTATUS(status);
      SCOPED_TRACE(absl::StrCat(point, "@", hit));
      Life::Known later;
      {
        Life life(folder.path(), 3);
        ExpectAsBefore(life, known);
        life.AllGather("often", 40, "later");
        later = life.known();
      }
      {
        Life life(folder.path(), 3);
        ExpectAsBefore(life, later);
        ASSERT_EQ(life.job().CompactJobLog().status(), absl::OkStatus());
        EXPECT_EQ(JobSegments(life.journal().folder()).size(), 1u);
      }
      Life life(folder.path(), 3);
      ExpectAsBefore(life, later);
      if (!killed) break;
      ++kills;
    }
    EXPECT_GE(kills, point == "log.drop" ? 3 : point == "log.write" ? 10 : 1) << point;
  }
}

// A full disk, or another error: what was told half changes nothing, then or later.
TEST(JobLog, ACompactionThatFailsChangesNothing) {
  base::TestFolder folder;
  std::string term;
  Life::Known known = Prepare(folder.path(), &term);
  {
    Life life(folder.path(), 3);
    for (const char* point :
         {"log.segment=error", "log.write=enospc@9", "log.write=enospc@30", "journal.compact=error"}) {
      ASSERT_TRUE(base::ArmFailpoints(point).ok());
      EXPECT_FALSE(life.job().CompactJobLog().ok()) << point;
      ASSERT_TRUE(base::ArmFailpoints("").ok());
      life.AllGather(point, 0, "between");
      ExpectAsBefore(life, known = life.known());
    }
  }
  Life life(folder.path(), 3);
  ExpectAsBefore(life, known);
}

// What is left must tell all: without its head it is damage, and not a shorter history.
TEST(JobLog, ALogWithoutItsHeadIsFound) {
  base::TestFolder folder;
  std::string term;
  Prepare(folder.path(), &term);
  fs::remove(JobSegments(term).front());
  const auto headless = Journal::Open(folder.path());
  EXPECT_EQ(headless.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(headless.status().message()), HasSubstr("records 1 to "));
}

TEST(JobLog, TheHeadOfATaleThatWasGivenUpHalfwayIsNoHead) {
  base::TestFolder folder;
  std::string term;
  Prepare(folder.path(), &term);
  {
    Life life(folder.path(), 3);
    ASSERT_TRUE(base::ArmFailpoints("journal.compact=error").ok());
    EXPECT_FALSE(life.job().CompactJobLog().ok());
    ASSERT_TRUE(base::ArmFailpoints("").ok());
    term = life.journal().folder();
  }
  const auto segments = JobSegments(term);
  for (const std::string& path : segments)
    if (path != segments.back()) fs::remove(path);
  EXPECT_EQ(Journal::Open(folder.path()).status().code(), absl::StatusCode::kDataLoss);
}

// Rounds of two workers go on meanwhile, and one comes back again and again.
TEST(JobLog, ManyRoundsKeepItShort) {
  constexpr uint64_t kBytes = 40'000, kLimit = kBytes + 10'000;  // what is known is less than that
  base::TestFolder folder;
  Life::Known known;
  uint64_t written = 0, longest = 0;
  {
    Life life(folder.path(), 2);
    uint64_t second = 7;  // the incarnation of worker 1
    for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(life.job().Admit(LogWorker(rank)).ok());
    auto compactor = LogCompactor::Start(life.job(), life.journal(), {.job_bytes = kBytes}).value();
    const std::string payload(100, 'p');
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (uint64_t told = 0, round = 0; told < 4 && std::chrono::steady_clock::now() < deadline; ++round) {
      Rendezvous& rendezvous = life.job().rendezvous();
      std::thread other([&] {
        EXPECT_TRUE(rendezvous.AllGather(LogWorker(1, second), "often", round, payload, {}, NeverEnds).ok());
      });
      EXPECT_TRUE(rendezvous.AllGather(LogWorker(0), "often", round, payload, {}, NeverEnds).ok());
      other.join();
      written += 2 * payload.size();
      if (round % 50 == 0) {
        life.job().roster().Lose(1, "test");
        second = round + 8;
        ASSERT_TRUE(life.job().Admit(LogWorker(1, second)).ok());
      }
      // No faster than it is looked at.
      const uint64_t bytes = life.journal().job_bytes();
      longest = std::max(longest, bytes);
      if (bytes < kLimit) continue;
      while (life.journal().job_bytes() >= kLimit && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++told;
    }
    EXPECT_GT(written, 3 * kBytes / 2);
    EXPECT_LT(longest, kLimit + 2000);
    EXPECT_LT(BytesOf(JobSegments(life.journal().folder())), kLimit);
    known = life.known();
    EXPECT_GE(known.size(), 5u);
  }
  Life life(folder.path(), 2);
  EXPECT_EQ(life.known(), known);
}

}  // namespace
}  // namespace regatta::server
