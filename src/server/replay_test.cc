// Whatever the order of verbs across lanes and workers, the log gives back exactly what was acknowledged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "base/testing/test_folder.h"
#include "server/log_compactor.h"
#include "server/testing/golden_job.h"
#include "server/testing/lasting_job.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;
using Whole = GoldenWorkers::Whole;

// A server with two lanes, and the same one after a kill at this moment.
class ReplayTest : public testing::Test {
 protected:
  void Start(base::Mode mode, base::LossPolicy policy = base::LossPolicy::kAwait,
             table::NanPolicy nan_policy = table::NanPolicy::kSkip, Rates rates = Rates::kNone) {
    spec_ = ParseJobSpec(GoldenRequest(mode).job()).value();
    spec_.loss_policy = policy;
    spec_.nan_policy = nan_policy;
    opened_ = OpenLastingJob(folder_ / "live", spec_);
    for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(job().roster().Join(GoldenWorkers::Worker(rank)).ok());
    workers_ = std::make_unique<GoldenWorkers>(job(), 1, rates);
  }
  void End() {
    workers_.reset();
    opened_ = {};
    fs::remove_all(folder_ / "live");
  }
  HostedJob& job() { return **opened_.job; }
  GoldenWorkers& workers() { return *workers_; }
  std::string Live() { return GoldenText(job()); }
  using Then = std::function<void(GoldenWorkers& workers)>;
  // And after what the workers do `then`.
  std::string Live(const Then& then) {
    then(workers());
    return Live();
  }
  std::string AfterAKill(const Then& then = nullptr, Rates rates = Rates::kNone) {
    const std::string copy = folder_ / absl::StrCat("killed", ++kills_);
    fs::copy(folder_ / "live", copy, fs::copy_options::recursive);
    const LastingJob again = OpenLastingJob(copy, spec_);
    if (!again.job.ok()) return std::string(again.job.status().message());
    if (then) {
      GoldenWorkers workers(**again.job, 1'000'000, rates);
      then(workers);
    }
    return GoldenText(**again.job);
  }
  // One frame of a push that holds a key of the lane; bytes that do not belong to it may follow.
  int PushFrame(int lane, uint64_t step, uint32_t part, bool more, const std::string& behind = "") {
    base::Key key = 0;  // of a shard behind those of earlier frames
    while (base::ShardOf(key) != job().spec().lanes.Shards(0, lane).begin + part) ++key;
    ps::FrameHeader header = workers().Header(ps::PUSH, 0, step);
    header.set_part(part);
    header.set_more(more);
    ps::Section& section = *header.add_sections();
    section.set_keys(1);
    section.set_width(kGoldenDims[0]);
    std::string body;
    GoldenWorkers::Put(body, key);
    for (int i = 0; i < kGoldenDims[0]; ++i) GoldenWorkers::Put(body, 1.0f);
    return workers().Ask(0, lane, header, body + behind);
  }

  absl::Status Save(const CompactorOptions& options = {}) {
    return LogCompactor::Start(job(), *opened_.journal, options).value()->Save();
  }

  base::TestFolder folder_;
  JobSpec spec_;
  LastingJob opened_;
  std::unique_ptr<GoldenWorkers> workers_;
  int kills_ = 0;
};

TEST_F(ReplayTest, ALoadInTheMiddleOfAJobIsNotUndone) {
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kSync}) {
    SCOPED_TRACE(Name(mode));
    Start(mode);
    for (uint64_t step = 0; step < 3; ++step)
      for (int rank = 0; rank < 2; ++rank) workers().Step(rank, 0, step);
    const uint64_t trained = job().rows();
    workers().Load();
    EXPECT_EQ(workers().refused(), 0);
    EXPECT_EQ(job().rows(), 80u) << "40 rows of two tables, and none of the " << trained << " before";
    EXPECT_EQ(AfterAKill(), Live());
    End();
  }
}

// Pushes of one frame and of several, with rates and without; a checkpoint between them.
TEST_F(ReplayTest, LearningRatesComeBackWithTheirPushes) {
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kSync})
    for (const base::LossPolicy policy : {base::LossPolicy::kAwait, base::LossPolicy::kFail}) {
      SCOPED_TRACE(absl::StrCat(Name(mode), " ", static_cast<int>(policy)));
      std::string with_rates, without;
      for (const Rates rates : {Rates::kNone, Rates::kOwn}) {
        Start(mode, policy, table::NanPolicy::kSkip, rates);
        for (uint64_t step = 0; step < 8; ++step) {
          for (int rank = 0; rank < 2; ++rank) workers().Step(rank, 0, step, step % 3 == 2 ? 3 : 1);
          if (step == 3) {
            EXPECT_TRUE(Save().ok());
          }
        }
        if (mode == base::Mode::kSync) workers().Step(0, 0, 8);  // the other worker's part is still to come
        EXPECT_EQ(workers().refused(), 0);
        EXPECT_EQ(AfterAKill(), Live());
        const auto finish = [&](GoldenWorkers& workers) { workers.Step(1, 0, 8, 2); };
        const std::string killed = AfterAKill(finish, rates);
        EXPECT_EQ(killed, Live(finish));
        (rates == Rates::kOwn ? with_rates : without) = Live();
        End();
      }
      EXPECT_NE(with_rates, without);
    }
}

// Steps that did not wait for a lost worker come before the load, not after it.
TEST_F(ReplayTest, ALoadAfterAWorkerWasLostIsNotUndone) {
  Start(base::Mode::kSync, base::LossPolicy::kShrink);
  const auto step = [&](int rank, uint64_t number) {
    for (int lane = 0; lane < kGoldenLanes; ++lane) EXPECT_EQ(rank == 0 ? PushFrame(lane, number, 0, false) : 0, 0);
  };
  job().roster().Lose(1, "test");
  for (uint64_t number = 0; number < 20; ++number) step(0, number);
  workers().Load();
  EXPECT_EQ(workers().refused(), 0);
  EXPECT_EQ(AfterAKill(), Live());
  step(0, 20);
  EXPECT_EQ(AfterAKill(), Live());
}

TEST_F(ReplayTest, ARefusedFrameIsNotAppliedByTheNext) {
  for (const base::LossPolicy policy :
       {base::LossPolicy::kAwait, base::LossPolicy::kFail}) {  // a push is held until it is whole, or not
    SCOPED_TRACE(static_cast<int>(policy));
    Start(base::Mode::kAsync, policy);
    EXPECT_NE(PushFrame(0, 0, 1, true, "xx"), 0) << "two bytes too many";
    const bool whole = policy == base::LossPolicy::kAwait;
    EXPECT_EQ(PushFrame(0, 0, 2, false) != 0, whole) << "the first frame is not there";
    EXPECT_EQ(job().rows(), whole ? 0u : 1u) << "nothing of the frame that was refused";
    EXPECT_EQ(PushFrame(0, 0, 0, false), 0) << "another push of the step";
    EXPECT_EQ(job().rows(), whole ? 1u : 2u);
    EXPECT_EQ(AfterAKill(), Live());
    End();
  }
}

TEST_F(ReplayTest, WhatFollowsARefusedPushIsWhole) {
  Start(base::Mode::kAsync);
  EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
  EXPECT_NE(PushFrame(0, 0, 2, true, "xx"), 0);
  EXPECT_NE(PushFrame(0, 0, 3, false), 0);
  EXPECT_EQ(job().rows(), 0u) << "a push is applied whole or not at all";
  EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
  EXPECT_EQ(PushFrame(0, 0, 2, false), 0);
  EXPECT_EQ(job().rows(), 2u);
  EXPECT_EQ(PushFrame(0, 1, 1, true), 0);
  EXPECT_EQ(PushFrame(0, 2, 0, false), 0) << "a push of another step takes the place of one that is not whole";
  EXPECT_NE(PushFrame(0, 1, 2, false), 0);
  EXPECT_EQ(AfterAKill(), Live());
}

TEST_F(ReplayTest, AFrameOfSeveralCountsThem) {
  Start(base::Mode::kAsync);
  EXPECT_NE(PushFrame(0, 0, 0, true), 0);
  EXPECT_EQ(job().rows(), 0u);
}

// A replay does not know by which stream a frame came.
TEST_F(ReplayTest, TheNewerOfTwoStreamsTakesOver) {
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kSync}) {
    SCOPED_TRACE(Name(mode));
    Start(mode);
    EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
    workers().UseStream(1);
    EXPECT_EQ(PushFrame(0, 0, 1, true), 0) << "the same push, sent again";
    workers().UseStream(0);
    EXPECT_NE(PushFrame(0, 0, 2, true), 0) << "the newer stream has taken over";
    workers().UseStream(1);
    EXPECT_EQ(PushFrame(0, 0, 2, true), 0);
    EXPECT_EQ(PushFrame(0, 0, 3, false), 0);
    if (mode == base::Mode::kAsync) {
      EXPECT_EQ(job().rows(), 3u);
    }
    EXPECT_EQ(AfterAKill(), Live());
    End();
  }
}

// The log cannot be made short behind the first frame of a push that waits for its last one.
TEST_F(ReplayTest, APushThatIsHeldForTooLongIsDroppedAndSentAgain) {
  for (const bool gone : {false, true}) {
    SCOPED_TRACE(gone);
    Start(base::Mode::kAsync);
    EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
    EXPECT_EQ(PushFrame(0, 0, 2, true), 0);
    if (gone) workers_ = std::make_unique<GoldenWorkers>(job(), 1000);  // the stream ends
    const auto kept = [&] { return job().State().lanes(0).logged(); };
    ASSERT_EQ(Save(), absl::OkStatus());
    EXPECT_EQ(kept(), 0u) << "it may still end";
    ASSERT_EQ(Save({.held = std::chrono::duration<double>(0)}), absl::OkStatus());
    EXPECT_EQ(kept(), 2u);
    if (!gone) {
      EXPECT_EQ(PushFrame(0, 0, 3, false), static_cast<int>(absl::StatusCode::kUnavailable));
    }
    EXPECT_EQ(AfterAKill(), Live());
    workers().UseStream(1);
    for (uint32_t part = 1; part <= 3; ++part) EXPECT_EQ(PushFrame(0, 0, part, part < 3), 0);
    EXPECT_EQ(job().rows(), 3u);
    EXPECT_EQ(AfterAKill(), Live());
    End();
  }
}

// What a stream that broke holds does not keep its worker from sending the push again.
TEST_F(ReplayTest, APushThatIsSentAgainHasTheMemoryOfTheFirst) {
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kSync}) {
    SCOPED_TRACE(Name(mode));
    Start(mode);
    EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
    job().LimitPushMemory(2 * job().push_memory(0)->used());
    EXPECT_EQ(PushFrame(0, 0, 2, true), 0);
    for (int stream = 1; stream < 4; ++stream) {
      workers().UseStream(stream);
      EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
      EXPECT_EQ(PushFrame(0, 0, 2, stream < 3), 0);
    }
    EXPECT_EQ(job().push_memory(0)->used() == 0, mode == base::Mode::kAsync) << "in sync the step waits for worker 1";
    EXPECT_EQ(AfterAKill(), Live());
    End();
  }
}

TEST_F(ReplayTest, ARefusedFrameOfAnotherStreamChangesNothing) {
  Start(base::Mode::kAsync);
  EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
  workers().UseStream(1);
  EXPECT_NE(PushFrame(0, 0, 2, false), 0) << "nothing to follow on this stream";
  EXPECT_NE(PushFrame(0, 0, 1, true, "xx"), 0);
  ASSERT_EQ(Save(), absl::OkStatus());
  workers().UseStream(0);
  EXPECT_EQ(PushFrame(0, 0, 2, false), 0);
  EXPECT_EQ(job().rows(), 2u);
  EXPECT_EQ(AfterAKill(), Live());
}

TEST_F(ReplayTest, ACheckpointBetweenTheFramesOfAFirstPushKeepsIt) {
  Start(base::Mode::kAsync);
  EXPECT_EQ(PushFrame(0, 0, 1, true), 0);
  ASSERT_EQ(Save(), absl::OkStatus());
  EXPECT_EQ(PushFrame(0, 0, 2, false), 0);
  EXPECT_EQ(job().rows(), 2u);
  EXPECT_EQ(AfterAKill(), Live());
}

// BEGIN tells what was learnt before it; batches behind that are not forgotten.
TEST_F(ReplayTest, ABeginKeepsWhatTheLaneHas) {
  Start(base::Mode::kAsync);
  workers().Push(1, 0, 0, 2, Whole::kWithoutLast);  // it keeps the log from here on
  EXPECT_EQ(PushFrame(0, 0, 0, false), 0);
  EXPECT_EQ(PushFrame(0, 10, 0, false), 0);
  ps::FrameHeader begin = workers().Header(ps::BEGIN, 0, 0);
  begin.mutable_learnt()->set_low(2);
  EXPECT_EQ(workers().Ask(0, 0, begin, ""), 0);
  ASSERT_EQ(Save(), absl::OkStatus());
  EXPECT_EQ(AfterAKill(), Live()) << "batch 10 is applied once";
}

TEST_F(ReplayTest, APartOfAnEarlierPassIsStagedAgain) {
  constexpr uint64_t kStep = 75;  // and batch, farther from 0 than a window
  Start(base::Mode::kSync);
  const auto begin = [&](int rank, uint64_t pass, uint64_t low) {
    ps::FrameHeader header = workers().Header(ps::BEGIN, pass, kStep);
    header.mutable_learnt()->set_pass(pass);
    header.mutable_learnt()->set_low(low);
    return workers().Ask(rank, 0, header, "");
  };
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(begin(rank, 0, 70), 0);
  EXPECT_EQ(PushFrame(0, kStep, 0, false), 0);
  EXPECT_EQ(begin(0, 1, 0), 0);
  ASSERT_EQ(Save(), absl::OkStatus());
  const Then complete = [](GoldenWorkers& workers) {
    EXPECT_EQ(workers.Ask(1, 0, workers.Header(ps::PUSH, 0, kStep), ""), 0);  // of no rows
  };
  const std::string again = AfterAKill(complete);
  EXPECT_EQ(again, Live(complete));
  EXPECT_EQ(job().rows(), 1u);
}

TEST_F(ReplayTest, AFarBeginIsRefusedAfterARestartToo) {
  Start(base::Mode::kSync);
  for (int rank = 0; rank < 2; ++rank) workers().Mark(ps::BEGIN, rank, 0, 0);
  ASSERT_EQ(Save(), absl::OkStatus());
  const Then far = [](GoldenWorkers& workers) {
    ps::FrameHeader begin = workers.Header(ps::BEGIN, 1, uint64_t{1} << 40);
    EXPECT_NE(workers.Ask(0, 0, begin, ""), 0);
  };
  far(workers());
  AfterAKill(far);
}

// Steps that were applied without a worker that was done would wait for it in a replay.
TEST_F(ReplayTest, AWorkerThatWasDoneDoesNotComeBackToAJobThatWentOn) {
  Start(base::Mode::kSync);
  job().roster().Leave(GoldenWorkers::Worker(1));
  EXPECT_EQ(job().Admit({1, 99, "again"}).status(), absl::OkStatus()) << "nothing has happened yet";
  job().roster().Leave({1, 99, "again"});
  EXPECT_EQ(PushFrame(0, 0, 0, false), 0);
  EXPECT_EQ(job().rows(), 1u);
  EXPECT_EQ(job().Admit({1, 100, "again"}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(AfterAKill(), Live());
}

TEST_F(ReplayTest, AStepWaitsForAWorkerThatGaveUp) {
  Start(base::Mode::kSync);
  job().roster().Leave(GoldenWorkers::Worker(1), Farewell::kGaveUp);
  EXPECT_EQ(PushFrame(0, 0, 0, false), 0);
  EXPECT_EQ(job().rows(), 0u);
  EXPECT_EQ(AfterAKill(), Live());
}

TEST_F(ReplayTest, APushWithoutBatchesIsRefusedWhereWorkersComeBack) {
  Start(base::Mode::kAsync);
  ps::FrameHeader header = workers().Header(ps::PUSH, 0, 0);
  header.clear_batches();
  EXPECT_NE(workers().Ask(0, 0, header, ""), 0);
}

// One bad table of several: none of them changes, and nobody else's step is spoilt.
TEST_F(ReplayTest, AStepWithNaNIsRefusedWhole) {
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kSync, base::Mode::kGeo}) {
    SCOPED_TRACE(Name(mode));
    Start(mode, base::LossPolicy::kAwait, table::NanPolicy::kAbort);
    const bool geo = mode == base::Mode::kGeo;
    ps::FrameHeader header = workers().Header(geo ? ps::ADD : ps::PUSH, 0, 0);
    base::Key key = 0;
    while (!job().spec().lanes.Shards(0, 0).Contains(base::ShardOf(key))) ++key;
    std::string body;
    for (const int table : {0, 1}) {
      ps::Section& section = *header.add_sections();
      section.set_table(static_cast<uint32_t>(table));
      section.set_keys(1);
      section.set_width(static_cast<uint32_t>(kGoldenDims[table]));
      GoldenWorkers::Put(body, key);
      for (int i = 0; i < kGoldenDims[table]; ++i) GoldenWorkers::Put(body, table == 1 ? std::nanf("") : 1.0f);
    }
    EXPECT_NE(workers().Ask(0, 0, header, body), 0);
    EXPECT_EQ(job().rows(), 0u);
    std::string block;
    for (int i = 0; i < kGoldenDense; ++i) GoldenWorkers::Put(block, std::nanf(""));
    EXPECT_NE(workers().Ask(0, kGoldenLanes, workers().Header(geo ? ps::ADD_DENSE : ps::PUSH_DENSE, 0, 0), block), 0);
    const int refused = workers().refused();
    for (int rank = 0; rank < 2; ++rank) {
      workers().Push(rank, 0, 0, 1, Whole::kYes, geo ? ps::ADD : ps::PUSH);
      workers().PushDense(rank, 0, 0, geo ? ps::ADD_DENSE : ps::PUSH_DENSE);
    }
    EXPECT_EQ(workers().refused(), refused) << "the job goes on";
    EXPECT_GT(job().rows(), 0u);
    EXPECT_EQ(AfterAKill(), Live());
    End();
  }
}

// In the middle of a round: who has changed a row is in the log and in the checkpoint, as the rows are.
TEST_F(ReplayTest, WhatGeoHasCountedSurvivesAKill) {
  for (const bool checkpoint : {false, true}) {
    SCOPED_TRACE(checkpoint ? "from a checkpoint" : "from the log");
    Start(base::Mode::kGeo);
    for (uint64_t step = 0; step < 4; ++step) workers().Combine(0, 0, step);
    workers().Combine(1, 0, 0);
    if (checkpoint) {
      ASSERT_EQ(Save(), absl::OkStatus());
    }
    workers().Combine(1, 0, 1);
    workers().Mark(ps::LEAVE, 0, 0, 0);
    EXPECT_EQ(workers().refused(), 0);
    const auto rest = [](GoldenWorkers& workers) {
      for (uint64_t step = 2; step < 6; ++step) workers.Combine(1, 0, step);
      workers.Combine(0, 0, 4);
    };
    const std::string before = Live();
    EXPECT_EQ(AfterAKill(), before);
    const std::string killed = AfterAKill(rest);
    EXPECT_EQ(killed, Live(rest));
    EXPECT_NE(killed, before);
    End();
  }
}

TEST_F(ReplayTest, AChangeOfGeoThatComesAgainCountsOnce) {
  Start(base::Mode::kGeo);
  struct Sent {
    int rank, lane;
    std::string frame;
  };
  std::vector<Sent> sent;
  workers().RecordWith([&](int rank, int lane, ps::Verb, const std::string& request, const std::string&) {
    sent.push_back({rank, lane, request});
  });
  workers().Combine(0, 0, 0);
  workers().Combine(1, 0, 0);
  const auto again = [&](GoldenWorkers& workers) {
    for (const Sent& one : sent) workers.Ask(one.rank, one.lane, one.frame);
  };
  const std::string once = Live();
  EXPECT_EQ(Live(again), once);
  EXPECT_EQ(AfterAKill(again), once);
}

// Of protocol 3: it stood in one lane's log and dropped the rows of all.
TEST_F(ReplayTest, AnOldClearInTheMiddleOfAJobIsNotGuessedAt) {
  Start(base::Mode::kAsync);
  workers().Step(0, 0, 0);
  EXPECT_NE(workers().Ask(0, 0, workers().Header(ps::CLEAR, 0, 0), ""), 0) << "no worker asks for it any more";
  const ps::FrameHeader old = workers().Header(ps::CLEAR, 0, 0);
  grpc::ByteBuffer request = wire::FrameWriter(old, 0).Finish();
  ASSERT_TRUE(opened_.journal->Log(0, GoldenWorkers::Worker(0), request).ok());
  EXPECT_THAT(AfterAKill(), testing::HasSubstr("start from the last save, with an empty data_dir"));
}

class RandomOrderTest : public ReplayTest,
                        public testing::WithParamInterface<std::tuple<base::Mode, base::LossPolicy, int>> {};

// Every verb that changes tables, from two workers and down three lanes, with refused frames, pushes that are not
// whole, new streams, checkpoints and the loss of a worker between.
TEST_P(RandomOrderTest, IsGivenBack) {
  const auto [mode, policy, seed] = GetParam();
  Start(mode, policy);
  std::mt19937 random(static_cast<uint32_t>(seed));
  const auto die = [&](uint32_t sides) { return random() % sides; };
  auto compactor = LogCompactor::Start(job(), *opened_.journal, {}).value();
  uint64_t step[2] = {0, 0};
  bool lost = false;
  int stream = 0;  // the newest; a request may come down the one before it
  for (int i = 0; i < 80; ++i) {
    const int rank = lost ? 0 : static_cast<int>(die(2));
    if (die(8) == 0) ++stream;
    workers().UseStream(std::max(0, stream - static_cast<int>(die(6) == 0)));
    switch (die(9)) {
      case 0:
      case 1:
      case 2:
        if (mode == base::Mode::kGeo) {
          if (die(4) > 0) {
            workers().Combine(rank, step[rank] / 20, step[rank]);
          } else {
            workers().Push(rank, 0, step[rank], 1, Whole::kYes, ps::ADD);
            workers().PushDense(rank, 0, step[rank], ps::ADD_DENSE);
          }
        } else {
          workers().Step(rank, 0, step[rank], 1 + static_cast<int>(die(3)));
        }
        ++step[rank];
        break;
      case 3:
        workers().Push(rank, 0, step[rank], 2, Whole::kWithoutLast);
        break;
      case 4:
        PushFrame(static_cast<int>(die(2)), step[0], 1 + die(3), die(2) == 0, die(2) == 0 ? "" : "xx");
        break;
      case 5:
        if (die(3) == 0) workers().Load();
        break;
      case 6:
        workers().Mark(die(2) == 0 ? ps::BEGIN : ps::LEAVE, rank, 0, 0);
        break;
      case 7:
        if (die(4) == 0) {
          ASSERT_EQ(compactor->Save(), absl::OkStatus());
        }
        break;
      case 8:
        if (policy == base::LossPolicy::kShrink && die(12) == 0 && !lost) {
          job().roster().Lose(1, "test");
          lost = true;
        }
        break;
    }
    if (die(10) == 0) {
      ASSERT_EQ(AfterAKill(), Live()) << "request " << i;
    }
  }
  EXPECT_EQ(AfterAKill(), Live());
}

INSTANTIATE_TEST_SUITE_P(Orders, RandomOrderTest,
                         testing::Combine(testing::Values(base::Mode::kAsync, base::Mode::kSync, base::Mode::kGeo),
                                          testing::Values(base::LossPolicy::kAwait, base::LossPolicy::kShrink),
                                          testing::Range(0, 3)));

}  // namespace
}  // namespace regatta::server
