// A worker that comes back as another process: what servers tell it, answer it, and refuse the one before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "base/grouped_keys.h"
#include "base/testing/test_folder.h"
#include "server/hosted_job.h"
#include "server/journal.h"
#include "server/lane_session.h"
#include "server/log_compactor.h"
#include "server/testing/lasting_job.h"
#include "wire/lane_progress.h"

namespace regatta::server {
namespace {

using testing::HasSubstr;

constexpr int kSparseLane = 0;
constexpr int kDenseLane = 1;
constexpr base::Key kKeys = 8;  // 0 … 7 are pulled

JobSpec ReturnSpec(base::Mode mode, int workers) {
  JobSpec spec;
  spec.mode = mode;
  spec.workers = workers;
  spec.loss_policy = base::LossPolicy::kAwait;
  table::SparseTableConfig sparse;
  sparse.name = "t";
  sparse.dim = 1;
  sparse.rule.name = "adagrad";
  spec.tables.sparse.push_back(sparse);
  spec.tables.dense.rule.name = "adam";
  spec.tables.dense.parameters = {{"w", {3}, {}}};
  return spec;
}

// A server, and workers whose processes are told apart by their incarnations.
class Job {
 public:
  Job(const std::string& folder, const JobSpec& spec) {
    LastingJob opened = OpenLastingJob(folder, spec);
    journal_ = std::move(opened.journal);
    EXPECT_TRUE(opened.job.ok()) << opened.job.status();
    job_ = *std::move(opened.job);
  }
  HostedJob& hosted() { return *job_; }
  absl::Status Save() { return LogCompactor::Start(*job_, *journal_, {}).value()->Save(); }

  // As after a kill of the process before.
  void Join(int rank, uint64_t incarnation) {
    job_->roster().Lose(rank, "test");
    EXPECT_EQ(job_->Admit({rank, incarnation, absl::StrCat("process ", incarnation)}).status(), absl::OkStatus());
    now_[rank] = incarnation;
  }
  base::DataPosition Learnt(int rank, int lane) {
    WorkerLane& worker_lane = job_->worker_lane(rank, lane);
    base::MutexLock lock(worker_lane.mu);
    return worker_lane.learnt;
  }

  struct Answer {
    int code = 0;
    std::string message;
    std::vector<float> floats;
  };
  // Of the rank's present process, or of the one that `incarnation` names. Parts 1 and 2 are the frames of one push.
  Answer Push(int rank, uint64_t batch, const std::map<base::Key, float>& grads, uint32_t part = 0,
              uint64_t incarnation = 0) {
    std::vector<base::Key> keys;
    for (const auto& [key, grad] : grads) keys.push_back(key);
    const base::GroupedKeys grouped(keys);
    ps::FrameHeader header = Header(ps::PUSH, batch);
    header.set_part(part);
    header.set_more(part == 1);
    AddSection(header, keys.size());
    std::string body(reinterpret_cast<const char*>(grouped.keys().data()), keys.size() * sizeof(base::Key));
    for (const base::Key key : grouped.keys()) Append(body, grads.at(key));
    return Ask(rank, kSparseLane, header, body, incarnation);
  }
  Answer PushDense(int rank, std::vector<uint64_t> batches, float grad) {
    ps::FrameHeader header = Header(ps::PUSH_DENSE, batches.back());
    header.mutable_batches()->Assign(batches.begin(), batches.end());
    std::string body;
    for (int i = 0; i < 3; ++i) Append(body, grad);
    return Ask(rank, kDenseLane, header, body, 0);
  }
  Answer BeginPass(int rank, const ps::LaneProgress& learnt) {
    ps::FrameHeader header = Header(ps::BEGIN, 0);
    header.clear_batches();
    header.set_pass(learnt.pass());
    *header.mutable_learnt() = learnt;
    return Ask(rank, kSparseLane, header, "", 0);
  }
  std::vector<float> Pull(int rank, uint64_t step) {
    std::vector<base::Key> keys(kKeys);
    for (base::Key key = 0; key < kKeys; ++key) keys[key] = key;
    const base::GroupedKeys grouped(keys);
    ps::FrameHeader header = Header(ps::PULL, step);
    header.clear_batches();
    AddSection(header, kKeys);
    const std::string body(reinterpret_cast<const char*>(grouped.keys().data()), kKeys * sizeof(base::Key));
    const Answer answer = Ask(rank, kSparseLane, header, body, 0);
    EXPECT_EQ(answer.code, 0) << answer.message;
    return answer.floats;
  }
  Answer PullDense(int rank, uint64_t step) {
    ps::FrameHeader header = Header(ps::PULL_DENSE, step);
    header.clear_batches();
    return Ask(rank, kDenseLane, header, "", 0);
  }

 private:
  static ps::FrameHeader Header(ps::Verb verb, uint64_t step) {
    ps::FrameHeader header;
    header.set_verb(verb);
    header.set_step(step);
    header.set_samples(1);
    header.add_batches(step);
    return header;
  }
  static void AddSection(ps::FrameHeader& header, size_t keys) {
    ps::Section* section = header.add_sections();
    section->set_keys(static_cast<uint32_t>(keys));
    section->set_width(1);
  }
  static void Append(std::string& body, float value) {
    body.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  Answer Ask(int rank, int lane, ps::FrameHeader& header, const std::string& body, uint64_t incarnation) {
    if (incarnation == 0) incarnation = now_[rank];
    header.set_id(++ids_[{rank, lane, incarnation}]);
    wire::FrameWriter writer(header, body.size());
    writer.Append(body.data(), body.size());
    grpc::ByteBuffer request = writer.Finish();
    auto& session = sessions_[{rank, lane, incarnation}];
    if (session == nullptr) session = std::make_unique<LaneSession>(*job_, Identity{rank, incarnation, "here"}, lane);
    grpc::ByteBuffer reply = session->Answer(request);
    wire::FrameReader frame(reply);
    EXPECT_TRUE(frame.Open().ok());
    Answer answer{frame.header().code(), frame.header().message(), {}};
    answer.floats.resize(frame.body_left() / sizeof(float));
    EXPECT_TRUE(frame.Read(answer.floats.data(), answer.floats.size() * sizeof(float)).ok());
    return answer;
  }

  std::unique_ptr<Journal> journal_;
  std::unique_ptr<HostedJob> job_;
  std::map<int, uint64_t> now_;
  std::map<std::tuple<int, int, uint64_t>, uint64_t> ids_;
  std::map<std::tuple<int, int, uint64_t>, std::unique_ptr<LaneSession>> sessions_;
};

class ReturnTest : public testing::Test {
 protected:
  std::unique_ptr<Job> Begin(base::Mode mode, int workers) {
    spec_ = ReturnSpec(mode, workers);
    auto job = std::make_unique<Job>(folder_.path(), spec_);
    for (int rank = 0; rank < workers; ++rank) job->Join(rank, 1);
    return job;
  }
  // As the server comes back after a kill.
  void Restart(std::unique_ptr<Job>& job) {
    job.reset();
    job = std::make_unique<Job>(folder_.path(), spec_);
  }

  base::TestFolder folder_;
  JobSpec spec_;
};

TEST_F(ReturnTest, ABatchThatTheLaneHasIsAnsweredAsDone) {
  auto job = Begin(base::Mode::kAsync, 1);
  for (uint64_t batch = 0; batch < 3; ++batch) EXPECT_EQ(job->Push(0, batch, {{1, 1.0f}}).code, 0);
  const std::vector<float> before = job->Pull(0, 3);
  job->Join(0, 2);
  EXPECT_EQ(job->Learnt(0, kSparseLane), (base::DataPosition{0, 3, 0}));
  EXPECT_EQ(job->Push(0, 2, {{1, 1.0f}}).code, 0);
  EXPECT_EQ(job->Pull(0, 3), before);
  Restart(job);
  job->Join(0, 3);
  EXPECT_EQ(job->Learnt(0, kSparseLane), (base::DataPosition{0, 3, 0}));
  EXPECT_EQ(job->Push(0, 2, {{1, 1.0f}}).code, 0);
  EXPECT_EQ(job->Pull(0, 3), before);
  EXPECT_EQ(job->Push(0, 3, {{1, 1.0f}}).code, 0);
  EXPECT_NE(job->Pull(0, 4), before) << "the next one is applied";
}

TEST_F(ReturnTest, WhatTheLaneHasIsInCheckpointsToo) {
  auto job = Begin(base::Mode::kAsync, 1);
  EXPECT_EQ(job->Push(0, 0, {{1, 1.0f}}).code, 0);
  EXPECT_EQ(job->Push(0, 2, {{1, 1.0f}}).code, 0) << "another thread's, which was faster";
  ASSERT_EQ(job->Save(), absl::OkStatus());
  Restart(job);
  EXPECT_EQ(job->Learnt(0, kSparseLane), (base::DataPosition{0, 1, 2}));
}

// As many threads may be ahead of one that is slow.
TEST_F(ReturnTest, AWindowOfHundredsOfBatchesIsInTheLogAndInCheckpoints) {
  auto job = Begin(base::Mode::kAsync, 1);
  base::DataPosition learnt;
  for (uint64_t batch = 1; batch <= 300; ++batch) {
    ASSERT_EQ(job->Push(0, batch, {{1, 1.0f}}).code, 0);
    learnt.Add(batch);
  }
  const std::vector<float> before = job->Pull(0, 301);
  uint64_t incarnation = 2;
  const auto repeat = [&] {
    Restart(job);
    job->Join(0, incarnation++);
    EXPECT_EQ(job->Learnt(0, kSparseLane), learnt);
    for (const uint64_t batch : {1, 64, 65, 300}) EXPECT_EQ(job->Push(0, batch, {{1, 1.0f}}).code, 0);
    EXPECT_EQ(job->Pull(0, 301), before) << "they are there";
  };
  repeat();
  ASSERT_EQ(job->Save(), absl::OkStatus());
  repeat();
  EXPECT_EQ(job->Push(0, 0, {{1, 1.0f}}).code, 0);
  EXPECT_EQ(job->Learnt(0, kSparseLane), (base::DataPosition{0, 301, 0}));
  EXPECT_NE(job->Pull(0, 301), before) << "the one that was missing is applied";
}

TEST_F(ReturnTest, APassBeginsWithWhatWasLearntOfItUpToAWindow) {
  auto job = Begin(base::Mode::kAsync, 1);
  base::DataPosition learnt{.pass = 3, .low = 10};
  for (uint64_t batch = 11; batch < 200; ++batch) learnt.Add(batch);
  ps::LaneProgress progress;
  wire::ToWire(learnt, progress);
  EXPECT_EQ(job->BeginPass(0, progress).code, 0);
  EXPECT_EQ(job->Learnt(0, kSparseLane), learnt);
  Restart(job);
  EXPECT_EQ(job->Learnt(0, kSparseLane), learnt);
  job->Join(0, 2);
  progress.set_pass(4);
  progress.mutable_beyond()->Resize(base::DataPosition::kMaxBeyond + 1, 1);
  const Job::Answer answer = job->BeginPass(0, progress);
  EXPECT_EQ(answer.code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(answer.message, HasSubstr("4160 batches"));
  EXPECT_EQ(job->Learnt(0, kSparseLane), learnt);
}

TEST_F(ReturnTest, TheProcessBeforeIsRefused) {
  auto job = Begin(base::Mode::kAsync, 1);
  EXPECT_EQ(job->Push(0, 0, {{1, 1.0f}}).code, 0);
  const std::vector<float> before = job->Pull(0, 1);
  job->Join(0, 2);
  const Job::Answer answer = job->Push(0, 1, {{1, 1.0f}}, 0, /*incarnation=*/1);
  EXPECT_EQ(answer.code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(answer.message, HasSubstr("process 2"));
  EXPECT_EQ(job->Pull(0, 1), before);
  Restart(job);
  EXPECT_NE(job->Push(0, 1, {{1, 1.0f}}, 0, /*incarnation=*/1).code, 0) << "after the server's return, too";
}

TEST_F(ReturnTest, APushOfSeveralFramesIsThereWholeOrNotAtAll) {
  auto job = Begin(base::Mode::kAsync, 1);
  const std::vector<float> before = job->Pull(0, 0);
  EXPECT_EQ(job->Push(0, 0, {{1, 1.0f}}, /*part=*/1).code, 0);
  EXPECT_EQ(job->Pull(0, 0), before);
  ASSERT_EQ(job->Save(), absl::OkStatus());
  Restart(job);
  job->Join(0, 2);
  EXPECT_EQ(job->Pull(0, 0), before);
  EXPECT_EQ(job->Push(0, 0, {{1, 1.0f}}, /*part=*/1).code, 0);
  EXPECT_EQ(job->Push(0, 0, {{2, 1.0f}}, /*part=*/2).code, 0);
  const std::vector<float> once = job->Pull(0, 1);
  job->Join(0, 3);
  EXPECT_EQ(job->Push(0, 0, {{1, 1.0f}}, /*part=*/1).code, 0);
  EXPECT_EQ(job->Push(0, 0, {{2, 1.0f}}, /*part=*/2).code, 0);
  EXPECT_EQ(job->Pull(0, 1), once);
}

TEST_F(ReturnTest, ADensePushOfSeveralBatchesIsAnsweredAsDoneByAnyThatItHolds) {
  auto job = Begin(base::Mode::kAsync, 1);
  EXPECT_EQ(job->PushDense(0, {0, 1, 3}, 1).code, 0);
  EXPECT_EQ(job->Learnt(0, kDenseLane), (base::DataPosition{0, 2, 2}));
  const std::vector<float> once = job->PullDense(0, 4).floats;
  job->Join(0, 2);
  EXPECT_EQ(job->PushDense(0, {3}, 1).code, 0);
  EXPECT_EQ(job->PullDense(0, 4).floats, once);
  EXPECT_EQ(job->PushDense(0, {2}, 1).code, 0);
  EXPECT_NE(job->PullDense(0, 4).floats, once);
  EXPECT_NE(job->PushDense(0, {5000}, 1).code, 0) << "a position holds a window of batches";
}

// The worker was killed in a step that this lane has applied and another has not.
TEST_F(ReturnTest, AStepOfSyncIsComputedAgainFromTheRowsBeforeIt) {
  auto job = Begin(base::Mode::kSync, 2);
  const auto both = [&](uint64_t step) {
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(job->Push(rank, step, {{step, 1.0f}, {3, 0.5f}}).code, 0);
      EXPECT_EQ(job->PushDense(rank, {step}, 0.5f).code, 0);
    }
  };
  both(0);
  const std::vector<float> rows = job->Pull(0, 1), dense = job->PullDense(0, 1).floats;
  both(1);
  const std::vector<float> next = job->Pull(0, 2), next_dense = job->PullDense(0, 2).floats;
  EXPECT_NE(rows, next);
  uint64_t incarnation = 2;
  const auto repeat = [&] {
    job->Join(1, incarnation++);
    job->Join(0, incarnation++);
    EXPECT_EQ(job->Pull(1, 1), rows);
    EXPECT_EQ(job->PullDense(1, 1).floats, dense);
    EXPECT_EQ(job->Push(1, 1, {{1, 1.0f}, {3, 0.5f}}).code, 0);
    EXPECT_EQ(job->PushDense(1, {1}, 0.5f).code, 0);
    EXPECT_EQ(job->Pull(1, 2), next);
    EXPECT_EQ(job->PullDense(0, 2).floats, next_dense);
  };
  repeat();
  Restart(job);
  repeat();
  ASSERT_EQ(job->Save(), absl::OkStatus());
  Restart(job);
  repeat();
  EXPECT_NE(job->PullDense(1, 0).code, 0) << "the rows before step 0 are gone";
  both(2);
  EXPECT_EQ(job->Pull(0, 2), next) << "before step 2, as after step 1";
}

TEST_F(ReturnTest, APartThatIsStagedIsAnsweredAsDone) {
  auto job = Begin(base::Mode::kSync, 2);
  const std::vector<float> rows = job->Pull(0, 0);
  EXPECT_EQ(job->Push(1, 0, {{1, 1.0f}}).code, 0);
  for (const uint64_t incarnation : {2, 3}) {
    ASSERT_EQ(job->Save(), absl::OkStatus());
    Restart(job);
    job->Join(0, 1);
    job->Join(1, incarnation);
    EXPECT_EQ(job->Learnt(1, kSparseLane), (base::DataPosition{0, 1, 0}));
    EXPECT_EQ(job->Pull(1, 0), rows);
    EXPECT_EQ(job->Push(1, 0, {{1, 1.0f}}).code, 0);
  }
  EXPECT_EQ(job->Push(0, 0, {{1, 1.0f}}).code, 0);
  EXPECT_NE(job->Pull(0, 1), rows);
}

TEST(Roster, AwaitsAWorkerThatIsLostAndEndsTheJobWhenItDoesNotComeBack) {
  Roster roster(2, base::LossPolicy::kAwait, std::chrono::seconds(0));
  ASSERT_TRUE(roster.Join({0, 1, "a"}).ok());
  ASSERT_TRUE(roster.Join({1, 1, "b"}).ok());
  roster.Lose(1, "test");
  EXPECT_TRUE(roster.Expected(1));
  EXPECT_EQ(roster.Check({1, 1, "b"}), absl::OkStatus()) << "it may have been slow only";
  const auto returned = roster.Join({1, 2, "c"});
  ASSERT_TRUE(returned.ok());
  EXPECT_EQ(*returned, "b");
  EXPECT_THAT(std::string(roster.Check({1, 1, "b"}).message()), HasSubstr("c"));
  roster.ExpireSilent(std::chrono::seconds(10));
  EXPECT_EQ(roster.failure(), absl::OkStatus());
  roster.Lose(1, "test");
  roster.ExpireSilent(std::chrono::seconds(10));
  EXPECT_THAT(std::string(roster.failure().message()), HasSubstr("worker 1 (c"));
}

TEST(Roster, AWorkerThatLivesIsNotReplaced) {
  Roster roster(2, base::LossPolicy::kAwait);
  ASSERT_TRUE(roster.Join({1, 1, "b"}).ok());
  const auto refused = roster.Join({1, 2, "c"});
  EXPECT_TRUE(absl::IsUnavailable(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("worker 1 (b, last heard 0.0 s ago) is running"));
  EXPECT_EQ(roster.Check({1, 1, "b"}), absl::OkStatus());
  roster.Suspect({1, 1, "b"});
  roster.Heard({1, 1, "b"}, {});
  EXPECT_TRUE(absl::IsUnavailable(roster.Join({1, 2, "c"}).status())) << "it was heard since its connection broke";
  roster.Suspect({1, 1, "b"});
  EXPECT_TRUE(absl::IsUnavailable(roster.Join({1, 2, "c"}).status())) << "it may open the connection again";
  roster.ExtendDeadlines(-Roster::kReopens);
  EXPECT_EQ(roster.Join({1, 2, "c"}).value(), "b") << "it was killed";
  roster.ExtendDeadlines(-Roster::kLives);
  EXPECT_EQ(roster.Join({1, 3, "d"}).value(), "c") << "it is silent";
}

TEST(Roster, AWorkerMayReconnectToAServerThatCameBackBeforeItIsReplaced) {
  Roster roster(2, base::LossPolicy::kAwait);
  roster.Restore({1, 1, "b"}, MemberState::kHere);
  EXPECT_TRUE(absl::IsUnavailable(roster.Join({1, 2, "c"}).status()));
  EXPECT_EQ(roster.Check({1, 1, "b"}), absl::OkStatus());
  roster.ExtendDeadlines(-Roster::kLives);
  EXPECT_EQ(roster.Join({1, 2, "c"}).value(), "b") << "it did not";
}

TEST(Roster, AWorkerThatGaveUpIsAwaited) {
  Roster roster(2, base::LossPolicy::kAwait);
  ASSERT_TRUE(roster.Join({0, 1, "a"}).ok());
  ASSERT_TRUE(roster.Join({1, 1, "b"}).ok());
  roster.Leave({1, 1, "b"}, Farewell::kGaveUp);
  EXPECT_TRUE(roster.Expected(1)) << "the others do not train without it";
  EXPECT_FALSE(roster.Check({1, 1, "b"}).ok());
  roster.Heard({1, 1, "b"}, {});  // a heartbeat that was under way
  EXPECT_FALSE(roster.Check({1, 1, "b"}).ok());
  EXPECT_FALSE(roster.AllGone());
  EXPECT_EQ(roster.Join({1, 2, "c"}).value(), "b");
  EXPECT_EQ(roster.Check({1, 2, "c"}), absl::OkStatus());
  for (const Identity& worker : {Identity{0, 1, "a"}, Identity{1, 2, "c"}}) roster.Leave(worker, Farewell::kGaveUp);
  EXPECT_TRUE(roster.AllGone()) << "nobody waits any more";
  EXPECT_TRUE(roster.CanGoOnLater());
}

TEST(Roster, AJobThatAReplacementFinishesIsDone) {
  Roster roster(2, base::LossPolicy::kAwait);
  ASSERT_TRUE(roster.Join({0, 1, "a"}).ok());
  ASSERT_TRUE(roster.Join({1, 1, "b"}).ok());
  roster.Leave({1, 1, "b"}, Farewell::kGaveUp);
  EXPECT_TRUE(roster.CanGoOnLater());
  EXPECT_EQ(roster.Join({1, 2, "c"}).value(), "b");
  EXPECT_FALSE(roster.CanGoOnLater()) << "the worker that gave up has been replaced";
  for (const Identity& worker : {Identity{0, 1, "a"}, Identity{1, 2, "c"}}) roster.Leave(worker);
  EXPECT_TRUE(roster.AllGone());
  EXPECT_FALSE(roster.CanGoOnLater());
}

TEST(Roster, NobodyIsReplacedBecauseThisProcessSlept) {
  Roster roster(2, base::LossPolicy::kAwait);
  roster.SetLives(std::chrono::milliseconds(500));
  ASSERT_TRUE(roster.Join({1, 1, "b"}).ok());
  roster.ExpireSilent(std::chrono::seconds(10));
  std::this_thread::sleep_for(Roster::kAsleep + std::chrono::milliseconds(100));
  EXPECT_TRUE(absl::IsUnavailable(roster.Join({1, 2, "c"}).status()));
  roster.ExpireSilent(std::chrono::seconds(10));
  EXPECT_TRUE(roster.Join({1, 2, "c"}).ok()) << "this process is awake, and the worker silent";
}

TEST(Roster, AStopWaitsALittleForAWorkerThatIsAway) {
  constexpr std::chrono::milliseconds kLittle(1);
  Roster roster(2, base::LossPolicy::kAwait);
  ASSERT_TRUE(roster.Join({0, 1, "a"}).ok());
  ASSERT_TRUE(roster.Join({1, 1, "b"}).ok());
  roster.Lose(1, "test");
  std::this_thread::sleep_for(2 * kLittle);
  roster.Heard({0, 1, "a"}, {});
  roster.ExpireSilent(std::chrono::seconds(10));
  EXPECT_EQ(roster.failure(), absl::OkStatus()) << "nobody was told to stop";
  roster.AskToStop();
  roster.ExpireSilent(std::chrono::seconds(10));
  EXPECT_EQ(roster.failure(), absl::OkStatus()) << "it may come back";
  std::this_thread::sleep_for(2 * kLittle);
  roster.ExpireSilent(kLittle);
  EXPECT_THAT(std::string(roster.failure().message()), AllOf(HasSubstr("told to stop"), HasSubstr("worker 1 (b")));
  EXPECT_TRUE(roster.CanGoOnLater());
}

}  // namespace
}  // namespace regatta::server
