#include "server/rendezvous.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/worker_wait.h"

namespace regatta::server {
namespace {

Identity Worker(int rank, uint64_t incarnation = 7) { return {rank, incarnation, "here"}; }

bool Never() { return false; }
bool Always() { return true; }

// A rendezvous of two workers, who are both here.
struct TwoWorkers {
  explicit TwoWorkers(base::LossPolicy policy) : roster(2, policy) {
    for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(roster.Join(Worker(rank)).ok());
  }
  // As when the process before was killed.
  void Replace(const Identity& successor) {
    roster.Lose(successor.rank, "test");
    EXPECT_TRUE(roster.Join(successor).ok());
    rendezvous.Forget(successor.rank);
  }
  Roster roster;
  Rendezvous rendezvous{roster};
};

// Worker 1 is lost while worker 0 waits: what worker 0 is told.
absl::StatusOr<std::shared_ptr<const Rendezvous::Payloads>> GatherWhileOneIsLost(base::LossPolicy policy) {
  TwoWorkers two(policy);
  std::thread loss([&] { two.roster.Lose(1, "no heartbeat"); });
  auto gathered = two.rendezvous.AllGather(Worker(0), "epoch", 0, "a", {}, Never);
  loss.join();
  return gathered;
}

TEST(Rendezvous, WhereTheJobEndsWithAWorkerNoRoundCompletesWithoutIt) {
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(GatherWhileOneIsLost(base::LossPolicy::kFail).status().code(), absl::StatusCode::kAborted) << i;
}

TEST(Rendezvous, WhereTheOthersGoOnRoundsCompleteWithoutIt) {
  const auto gathered = GatherWhileOneIsLost(base::LossPolicy::kShrink);
  ASSERT_TRUE(gathered.ok()) << gathered.status();
  EXPECT_EQ(**gathered, (Rendezvous::Payloads{{0, "a"}}));
}

using Gathered = absl::StatusOr<std::shared_ptr<const Rendezvous::Payloads>>;

// A call in a thread of its own: when the constructor returns it waits, or has ended.
class WaitingCall {
 public:
  WaitingCall(Rendezvous& rendezvous, const Identity& worker, const std::string& name, const std::string& payload)
      : gathered_(absl::UnknownError("it waits")), thread_([this, &rendezvous, worker, name, payload] {
          gathered_ = rendezvous.AllGather(worker, name, 0, payload, {}, [this] {
            waits_ = true;
            waits_.notify_all();
            return cancelled_.load();
          });
          ended_ = waits_ = true;
          waits_.notify_all();
        }) {
    waits_.wait(false);
  }
  ~WaitingCall() {
    if (thread_.joinable()) (void)Cancel();
  }
  Gathered Cancel() {
    cancelled_ = true;
    return End();
  }
  Gathered End() {
    thread_.join();
    return gathered_;
  }
  // It has ended within seconds, by itself.
  bool Ends() const {
    for (int i = 0; i < 500 && !ended_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return ended_;
  }

 private:
  Gathered gathered_;
  std::atomic<bool> waits_{false}, cancelled_{false}, ended_{false};
  std::thread thread_;
};

// What a process brought that died, and whose place was taken, is not taken for what its successor will bring.
TEST(Rendezvous, WhoeverTakesAPlaceBringsItsOwn) {
  TwoWorkers two(base::LossPolicy::kAwait);
  WaitingCall old(two.rendezvous, Worker(1), "pushed", "old");
  two.Replace(Worker(1, 8));
  WaitingCall first(two.rendezvous, Worker(0), "pushed", "a");
  EXPECT_TRUE(two.rendezvous.AllGather(Worker(1, 8), "pushed", 0, "new", {}, Never).ok());
  const Gathered gathered = first.End();
  ASSERT_TRUE(gathered.ok()) << gathered.status();
  EXPECT_EQ(**gathered, (Rendezvous::Payloads{{0, "a"}, {1, "new"}}));
}

// Otherwise whoever waits for the old process to end, before its successor goes on, waits for ever.
TEST(Rendezvous, ACallOfAProcessWhosePlaceWasTakenEnds) {
  TwoWorkers two(base::LossPolicy::kAwait);
  WaitingCall old(two.rendezvous, Worker(1), "pushed", "old");
  two.Replace(Worker(1, 8));
  ASSERT_TRUE(old.Ends());
  EXPECT_TRUE(absl::IsFailedPrecondition(old.End().status()));
}

// It was let in by the roster a moment before its place was taken.
TEST(Rendezvous, ACallThatComesAfterItsPlaceWasTakenIsRefused) {
  TwoWorkers two(base::LossPolicy::kAwait);
  two.Replace(Worker(1, 8));
  EXPECT_TRUE(absl::IsFailedPrecondition(two.rendezvous.AllGather(Worker(1), "pushed", 0, "old", {}, Always).status()));
  WaitingCall first(two.rendezvous, Worker(0), "pushed", "a");
  EXPECT_TRUE(absl::IsCancelled(first.Cancel().status())) << "it met the old process";
}

// A Connect that was sent twice is served twice, the second time perhaps when the worker waits here already.
TEST(Rendezvous, AProcessThatIsAdmittedTwiceKeepsWhatItBrought) {
  TwoWorkers two(base::LossPolicy::kAwait);
  two.Replace(Worker(1, 8));
  WaitingCall waiting(two.rendezvous, Worker(1, 8), "pushed", "new");
  EXPECT_TRUE(two.roster.Join(Worker(1, 8)).ok());
  two.rendezvous.Forget(1);
  WaitingCall first(two.rendezvous, Worker(0), "pushed", "a");
  ASSERT_TRUE(waiting.Ends());
  EXPECT_EQ(waiting.End().status(), absl::OkStatus());
  EXPECT_EQ(first.End().status(), absl::OkStatus());
}

// A name that is used again and again does not push out what else has to be known.
TEST(Rendezvous, OfOneNameTheLastRoundsAreKept) {
  Roster roster(1, base::LossPolicy::kAwait);
  Rendezvous rendezvous(roster);
  EXPECT_TRUE(roster.Join(Worker(0)).ok());
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(rendezvous.AllGather(Worker(0), absl::StrCat("once ", i), 0, "", {}, Never).ok());
  for (uint64_t round = 0; round < 1000; ++round)
    EXPECT_TRUE(rendezvous.AllGather(Worker(0), "often", round, "", {}, Never).ok());
  const auto over = rendezvous.over();
  EXPECT_LE(over.size(), 106u);
  EXPECT_NE(std::find(over.begin(), over.end(), Rendezvous::RoundKey("often", 999)), over.end());
  EXPECT_NE(std::find(over.begin(), over.end(), Rendezvous::RoundKey("once 99", 0)), over.end());
}

// A process that comes back late would wait for the others for ever: they were there.
TEST(Rendezvous, ACallForARoundThatIsNotKeptAnyMoreIsRefused) {
  Roster roster(1, base::LossPolicy::kAwait);
  Rendezvous rendezvous(roster);
  EXPECT_TRUE(roster.Join(Worker(0)).ok());
  const auto name = [](int i) { return absl::StrCat("barrier_worker ", i, " after 0 epochs"); };
  const auto gather = [&](const std::string& round) {
    return rendezvous.AllGather(Worker(0), round, 0, "", std::chrono::seconds(5), Never).status();
  };
  for (int i = 0; i < 400; ++i) EXPECT_EQ(gather(name(i)), absl::OkStatus()) << i;
  const auto over = rendezvous.over();
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    const bool kept = std::find(over.begin(), over.end(), Rendezvous::RoundKey(name(i), 0)) != over.end();
    const absl::Status again = gather(name(i));
    EXPECT_EQ(again.code(), kept ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition) << i;
    refused += kept ? 0 : 1;
    if (!kept) {
      EXPECT_NE(again.message().find(absl::StrCat("'", name(i), "', round 0, which is over")), std::string::npos);
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_EQ(gather(name(400)), absl::OkStatus()) << "a new one";
  const auto often = [&](uint64_t round) {
    return rendezvous.AllGather(Worker(0), "often", round, "", std::chrono::seconds(5), Never).status().code();
  };
  for (uint64_t round = 0; round < 20; ++round) EXPECT_EQ(often(round), absl::StatusCode::kOk);
  EXPECT_EQ(often(14), absl::StatusCode::kFailedPrecondition) << "five rounds of the name came later";
  EXPECT_EQ(often(19), absl::StatusCode::kOk);
  EXPECT_EQ(often(20), absl::StatusCode::kOk) << "a new one";
}

// What `rank` finds when everybody comes to `name`.
std::string BroughtBy(TwoWorkers& two, const std::string& name, int rank) {
  std::thread other(
      [&] { EXPECT_TRUE(two.rendezvous.AllGather(Worker(1 - rank), name, 0, "theirs", {}, Never).ok()); });
  const auto gathered = two.rendezvous.AllGather(Worker(rank), name, 0, "mine", {}, Never);
  other.join();
  return gathered.ok() ? (*gathered)->at(rank) : std::string(gathered.status().message());
}

TEST(Rendezvous, WhatACallBroughtThatEndsWithoutAnAnswerIsNotKept) {
  TwoWorkers two(base::LossPolicy::kFail);
  const std::string large(Rendezvous::kMostBytes, 'x');
  for (int i = 0; i < 3; ++i) {  // more than a worker may have here
    const std::string name = absl::StrCat("never ", i);
    EXPECT_TRUE(absl::IsCancelled(two.rendezvous.AllGather(Worker(0), name, 0, large, {}, Always).status())) << i;
    EXPECT_TRUE(absl::IsDeadlineExceeded(
        two.rendezvous.AllGather(Worker(0), name, 1, large, std::chrono::nanoseconds(1), Never).status()))
        << i;
  }
  EXPECT_EQ(BroughtBy(two, "never 0", 0), "mine");
}

TEST(Rendezvous, AWorkerHasSoManyBytesHereAndNoMore) {
  TwoWorkers two(base::LossPolicy::kFail);
  std::atomic<bool> there{false}, over{false};
  std::thread waiting([&] {
    const auto cancelled = [&] {
      there = true;
      there.notify_all();
      return over.load();
    };
    EXPECT_TRUE(absl::IsCancelled(
        two.rendezvous.AllGather(Worker(0), "large", 0, std::string(Rendezvous::kMostBytes, 'x'), {}, cancelled)
            .status()));
  });
  there.wait(false);
  const absl::Status refused = two.rendezvous.AllGather(Worker(0), "more", 0, "x", {}, Always).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find(absl::StrCat("may have ", Rendezvous::kMostBytes)), std::string::npos) << refused;
  EXPECT_TRUE(absl::IsCancelled(two.rendezvous.AllGather(Worker(1), "more", 0, "x", {}, Always).status()))
      << "another worker's";
  over = true;
  waiting.join();
  EXPECT_EQ(BroughtBy(two, "more", 0), "mine");
}

TEST(Rendezvous, AWorkerHasSoManyCallsWaitingAndNoMore) {
  TwoWorkers two(base::LossPolicy::kFail);
  std::atomic<bool> over{false};
  std::atomic<size_t> refused{0};
  std::vector<std::thread> calls;
  for (size_t i = 0; i < 2 * Rendezvous::kMostWaiting; ++i)
    calls.emplace_back([&, i] {
      const auto gathered =
          two.rendezvous.AllGather(Worker(0), absl::StrCat("call ", i), 0, "", {}, [&] { return over.load(); });
      if (absl::IsResourceExhausted(gathered.status()) && ++refused == Rendezvous::kMostWaiting) over = true;
    });
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(refused, Rendezvous::kMostWaiting);
  EXPECT_EQ(BroughtBy(two, "afterwards", 0), "mine");
}

TEST(Rendezvous, OfTheRoundsThatAreOverSoManyBytesAreKept) {
  Roster roster(1, base::LossPolicy::kAwait);
  Rendezvous rendezvous(roster);
  EXPECT_TRUE(roster.Join(Worker(0)).ok());
  const size_t bytes = size_t{4} << 20;
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(rendezvous.AllGather(Worker(0), absl::StrCat("large ", i), 0, std::string(bytes, 'x'), {}, Never).ok());
  const auto over = rendezvous.over();
  EXPECT_EQ(over.size(), Rendezvous::kKeptBytes / bytes);
  EXPECT_NE(std::find(over.begin(), over.end(), Rendezvous::RoundKey("large 99", 0)), over.end());
}

TEST(Rendezvous, TheLastRoundsAreKeptWhateverTheirSize) {
  TwoWorkers two(base::LossPolicy::kAwait);
  const std::string large(Rendezvous::kMostBytes, 'x');
  for (const char* name : {"a", "b", "c"}) {
    std::thread other([&] { EXPECT_TRUE(two.rendezvous.AllGather(Worker(1), name, 0, large, {}, Never).ok()); });
    EXPECT_TRUE(two.rendezvous.AllGather(Worker(0), name, 0, large, {}, Never).ok());
    other.join();
  }
  EXPECT_EQ(two.rendezvous.over(), (std::vector<Rendezvous::RoundKey>{{"b", 0}, {"c", 0}}));
  EXPECT_TRUE(two.rendezvous.AllGather(Worker(0), "c", 0, "again", {}, Never).ok());
}

// What is said in an hour, looked at every second, with the seconds at which it was.
std::vector<std::string> SaidInAnHour(WorkerWait& wait, WorkerWait::Clock::time_point start, const Roster* roster) {
  std::vector<std::string> said;
  for (int second = 0; second <= 3600; ++second)
    if (const std::string line = wait.LineIfDue(start + std::chrono::seconds(second), roster); !line.empty())
      said.push_back(line.substr(0, line.find(" s for")));
  return said;
}

TEST(WorkerWait, IsToldEverMoreSeldom) {
  const WorkerWait::Clock::time_point start;
  WorkerWait wait(2, std::chrono::seconds(30), start);
  EXPECT_EQ(SaidInAnHour(wait, start, nullptr),
            (std::vector<std::string>{"waiting 30", "waiting 90", "waiting 210", "waiting 450", "waiting 930",
                                      "waiting 1530", "waiting 2130", "waiting 2730", "waiting 3330"}));
}

TEST(WorkerWait, NamesThoseWhoHaveNotComeAndEndsWithTheLast) {
  const WorkerWait::Clock::time_point start;
  const auto after = [start](int workers, const Roster* roster) {
    return WorkerWait(workers, std::chrono::seconds(30), start).LineIfDue(start + std::chrono::seconds(31), roster);
  };
  EXPECT_EQ(after(0, nullptr), "waiting 31 s for the first worker; one that has ended says why in its own log");
  EXPECT_EQ(after(2, nullptr),
            "waiting 31 s for worker 0 (not here yet), worker 1 (not here yet); one that has ended says why in its own "
            "log");
  EXPECT_NE(after(40, nullptr).find("worker 15 (not here yet) and 24 more;"), std::string::npos);
  Roster roster(2, base::LossPolicy::kFail);
  ASSERT_TRUE(roster.Join(Worker(0)).ok());
  EXPECT_EQ(after(2, &roster), "waiting 31 s for worker 1 (not here yet); one that has ended says why in its own log");
  ASSERT_TRUE(roster.Join(Worker(1)).ok());
  EXPECT_EQ(after(2, &roster), "");
}

// So that a job whose save failed does not fail with the same words for ever.
TEST(Rendezvous, AFailureIsHeardByAllAndNotRemembered) {
  for (const base::LossPolicy policy : {base::LossPolicy::kAwait, base::LossPolicy::kFail}) {
    TwoWorkers two(policy);
    Rendezvous& rendezvous = two.rendezvous;
    int recorded = 0;
    rendezvous.RecordWith([&](const std::string&, uint64_t, const Rendezvous::Payloads&) {
      ++recorded;
      return absl::OkStatus();
    });
    std::thread other([&] {
      EXPECT_EQ(rendezvous.AllGather(Worker(1), "saved", 0, "", {}, Never).status().message(), "worker 0: full");
    });
    const auto gathered = rendezvous.AllGather(Worker(0), "saved", 0, "full", {}, Never, Outcome::kFailure);
    other.join();
    EXPECT_EQ(gathered.status().code(), absl::StatusCode::kAborted);
    EXPECT_EQ(recorded, 0);
    EXPECT_TRUE(rendezvous.over().empty());
    std::thread again([&] { EXPECT_TRUE(rendezvous.AllGather(Worker(1), "saved", 0, "", {}, Never).ok()); });
    EXPECT_TRUE(rendezvous.AllGather(Worker(0), "saved", 0, "", {}, Never).ok());
    again.join();
    EXPECT_EQ(recorded, 1);
  }
}

// The disk was full when it wrote; there is room when its successor does.
TEST(Rendezvous, AFailureGoesWithTheProcessThatBroughtIt) {
  TwoWorkers two(base::LossPolicy::kAwait);
  Rendezvous& rendezvous = two.rendezvous;
  const auto killed = rendezvous.AllGather(
      Worker(0), "saved", 0, "full", {}, [] { return true; }, Outcome::kFailure);
  EXPECT_TRUE(absl::IsCancelled(killed.status())) << killed.status();
  two.Replace(Worker(0, 8));
  std::thread other([&] { EXPECT_TRUE(rendezvous.AllGather(Worker(1), "saved", 0, "", {}, Never).ok()); });
  EXPECT_TRUE(rendezvous.AllGather(Worker(0, 8), "saved", 0, "", {}, Never).ok());
  other.join();
}

TEST(Rendezvous, OneThatGaveUpIsWaitedForWhereItComesBack) {
  for (const base::LossPolicy policy : {base::LossPolicy::kAwait, base::LossPolicy::kShrink}) {
    TwoWorkers two(policy);
    two.roster.Leave(Worker(0), Farewell::kGaveUp);
    const auto gathered = two.rendezvous.AllGather(Worker(1), "saved", 0, "", std::chrono::milliseconds(50), Never);
    EXPECT_EQ(gathered.status().code(),
              policy == base::LossPolicy::kAwait ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kOk);
    EXPECT_EQ(two.rendezvous.over().empty(), policy == base::LossPolicy::kAwait);
  }
}

}  // namespace
}  // namespace regatta::server
