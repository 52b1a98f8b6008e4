// A step that pulls several times before its commit: each pull gives what the mode promises for the step.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/async.h"
#include "comm/geo.h"
#include "comm/half_async.h"
#include "comm/sync.h"
#include "comm/testing/in_process_job.h"
#include "comm/testing/small_step.h"

namespace regatta::comm {
namespace {

// The value of one key, pulled by a step.
float PullOne(Communicator& comm, base::Key key, uint64_t batch, int thread = 0) {
  const StepViews views({.grads = {{key, 0}}, .dense = {}}, batch, thread);
  base::StepRows rows;
  const absl::Status pulled = comm.Pull(views.wanted(), &rows);
  EXPECT_TRUE(pulled.ok()) << pulled;
  return pulled.ok() ? views.Read(rows).at(key) : NAN;
}

absl::Status CommitOne(Communicator& comm, base::Key key, uint64_t batch, int thread = 0) {
  return comm.Commit(StepViews({.grads = {{key, -1}}, .dense = {-1, 0}}, batch, thread).grads());
}

TEST(SeveralPulls, AsyncTakesWhatWasFetchedAheadOnceAndThenAsksTheServers) {
  InProcessJob job(base::Mode::kAsync, 1, SmallTables());
  Async async(job.client(0), 1, 1);
  ASSERT_TRUE(async.traits().prefetches);
  ASSERT_TRUE(async.BeginPass(SmallPass()).ok());
  for (uint64_t batch = 0; batch < 6; ++batch) {
    // From the second step on the first pull was fetched before the commit of the step before.
    EXPECT_EQ(PullOne(async, 1, batch), batch == 0 ? 0.0f : static_cast<float>(batch - 1));
    EXPECT_EQ(PullOne(async, 1, batch), static_cast<float>(batch)) << "fresh";
    EXPECT_EQ(PullOne(async, 100 + batch, batch), 0.0f) << "another key";
    const StepViews next({.grads = {{1, 0}}, .dense = {}}, batch + 1, 0);
    ASSERT_TRUE(async.Prefetch(next.wanted()).ok());
    EXPECT_EQ(PullOne(async, 1, batch), static_cast<float>(batch)) << "beside the next step's rows";
    ASSERT_TRUE(CommitOne(async, 1, batch).ok());
    ASSERT_TRUE(async.Flush().ok());
  }
  ASSERT_TRUE(async.EndPass().ok());
  EXPECT_EQ(job.rows().at(1), 6);
}

TEST(SeveralPulls, AsyncGivesFreshRowsToEveryPullOfInference) {
  InProcessJob job(base::Mode::kAsync, 1, SmallTables());
  Async async(job.client(0), 1, 4);
  ASSERT_TRUE(async.BeginPass(SmallPass()).ok());
  ASSERT_TRUE(RunStep(async, {.grads = {{1, -1}, {2, -2}}, .dense = {}}, 0).ok());
  ASSERT_TRUE(async.EndPass().ok());
  base::PassKeys infer = SmallPass(1);
  infer.kind = base::StepKind::kInfer;
  ASSERT_TRUE(async.BeginPass(infer).ok());
  for (const base::Key key : {1, 2, 1}) {
    const StepViews views({.grads = {{key, 0}}, .dense = {}}, 0, 0, 1);
    base::StepRows rows;
    ASSERT_TRUE(async.Pull(views.wanted(base::StepKind::kInfer), &rows).ok());
    EXPECT_EQ(views.Read(rows).at(key), static_cast<float>(key));
  }
}

// Worker 1 has pushed its part of step 1 when worker 0 pulls it again: the step is not applied, and is not seen.
TEST(SeveralPulls, SyncSeesAllStepsBeforeItsOwnAndNoLaterOne) {
  InProcessJob job(base::Mode::kSync, 2, SmallTables());
  Sync first(job.client(0), job.agree(), 1, 0), second(job.client(1), job.agree(), 1, 0);
  const std::vector<Sync*> workers{&first, &second};
  ASSERT_TRUE(InThreads(2, [&](int rank) { return workers[static_cast<size_t>(rank)]->BeginPass(SmallPass()); }).ok());
  for (uint64_t step = 0; step < 4; ++step) {
    const auto want = static_cast<float>(step);  // the mean of both is 1 a step
    EXPECT_EQ(PullOne(first, 1, step), want);
    EXPECT_EQ(PullOne(second, 1, step), want);
    ASSERT_TRUE(CommitOne(second, 1, step).ok());
    ASSERT_TRUE(second.Flush().ok());
    EXPECT_EQ(PullOne(first, 1, step), want) << "again";
    EXPECT_EQ(PullOne(first, 100, step), 0.0f) << "another key";
    ASSERT_TRUE(CommitOne(first, 1, step).ok());
  }
  ASSERT_TRUE(InThreads(2, [&](int rank) { return workers[static_cast<size_t>(rank)]->EndPass(); }).ok());
  EXPECT_EQ(job.rows().at(1), 4);
}

TEST(SeveralPulls, HalfAsyncSeesAllGroupsBeforeItsOwn) {
  InProcessJob job(base::Mode::kHalfAsync, 1, SmallTables());
  HalfAsync half(job.client(0), 1, 2, 1);
  ASSERT_TRUE(half.BeginPass(SmallPass()).ok());
  for (uint64_t batch = 0; batch < 6; ++batch) {
    for (int pull = 0; pull < 2; ++pull) EXPECT_EQ(PullOne(half, 1, batch), static_cast<float>(batch / 2)) << batch;
    EXPECT_EQ(PullOne(half, 100 + batch, batch), 0.0f);
    ASSERT_TRUE(CommitOne(half, 1, batch).ok());
  }
  ASSERT_TRUE(half.EndPass().ok());
}

// Another worker changes the row on the servers meanwhile: the replica goes by its own until it exchanges.
TEST(SeveralPulls, GeoReadsItsReplica) {
  InProcessJob job(base::Mode::kGeo, 2, SmallTables());
  const auto first = Geo::Create(job.client(0), SmallTables(), {.threads = 1, .workers = 2}).value();
  const auto second = Geo::Create(job.client(1), SmallTables(), {.threads = 1, .workers = 2}).value();
  ASSERT_TRUE(first->BeginPass(SmallPass()).ok());
  ASSERT_TRUE(second->BeginPass(SmallPass()).ok());
  EXPECT_EQ(PullOne(*first, 1, 0), 0.0f);
  ASSERT_TRUE(RunStep(*second, {.grads = {{1, -8}}, .dense = {}}, 0).ok());
  ASSERT_TRUE(second->Flush().ok());
  EXPECT_EQ(job.rows().at(1), 8);
  EXPECT_EQ(PullOne(*first, 1, 0), 0.0f) << "its own";
  EXPECT_EQ(PullOne(*first, 2, 0), 0.0f) << "first met";
  ASSERT_TRUE(CommitOne(*first, 1, 0).ok());
  ASSERT_TRUE(first->Flush().ok());
  const float exchanged = job.rows().at(1);
  EXPECT_EQ(exchanged, 4.5f) << "the mean of 8 and 1";
  EXPECT_EQ(PullOne(*first, 1, 1), exchanged);
  EXPECT_EQ(PullOne(*first, 1, 1), exchanged);
}

}  // namespace
}  // namespace regatta::comm
