// A server that comes back: by its log, by its checkpoint and the log behind it, and what it then answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/failpoint.h"
#include "base/grouped_keys.h"
#include "base/testing/test_folder.h"
#include "server/hosted_job.h"
#include "server/journal.h"
#include "server/lane_session.h"
#include "server/local_saves.h"
#include "server/log_compactor.h"
#include "server/testing/lasting_job.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kDim = 2;
constexpr int kDense = 3;
constexpr int kRowLane = 0;
constexpr int kBlockLane = 1;

Identity RecoveryWorker(int rank, uint64_t incarnation = 7) { return {rank, incarnation, "here"}; }

JobSpec RecoverySpec(base::Mode mode, int workers) {
  JobSpec spec;
  spec.mode = mode;
  spec.workers = workers;
  table::SparseTableConfig sparse;
  sparse.name = "t";
  sparse.dim = kDim;
  sparse.rule.name = "adagrad";
  spec.tables.sparse.push_back(sparse);
  spec.tables.dense.rule.name = "adam";
  spec.tables.dense.parameters = {{"w", {kDense}, {}}};
  return spec;
}

// A server's life: what Kill leaves is what its disk has.
class RecoveredLife {
 public:
  RecoveredLife(const std::string& folder, const JobSpec& spec) {
    LastingJob opened = OpenLastingJob(folder, spec);
    journal_ = std::move(opened.journal);
    status_ = opened.job.status();
    if (opened.job.ok()) job_ = *std::move(opened.job);
  }

  const absl::Status& status() const { return status_; }
  HostedJob& job() { return *job_; }
  Journal& journal() { return *journal_; }

  // A push of key → gradient, or of the dense block; the code of its answer.
  int Push(int rank, uint64_t id, uint64_t step, const std::map<base::Key, float>& grads, uint32_t part = 0,
           bool more = false) {
    std::vector<base::Key> keys;
    for (const auto& [key, grad] : grads) keys.push_back(key);
    const base::GroupedKeys grouped(keys);
    ps::FrameHeader header = Header(ps::PUSH, id, step);
    header.set_part(part);
    header.set_more(more);
    ps::Section* section = header.add_sections();
    section->set_keys(static_cast<uint32_t>(keys.size()));
    section->set_width(kDim);
    std::string body(reinterpret_cast<const char*>(grouped.keys().data()), keys.size() * sizeof(base::Key));
    for (const base::Key key : grouped.keys())
      for (int i = 0; i < kDim; ++i) Append(body, grads.at(key));
    return Ask(rank, kRowLane, header, body);
  }
  int PushDense(int rank, uint64_t id, uint64_t step, float grad) {
    std::string body;
    for (int i = 0; i < kDense; ++i) Append(body, grad);
    return Ask(rank, kBlockLane, Header(ps::PUSH_DENSE, id, step), body);
  }

  using Rows = std::map<base::Key, std::vector<float>>;
  Rows rows() {
    Rows rows;
    for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
      job_->sparse(0).ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
        rows[key] = {row.begin(), row.end()};
      });
    const std::span<const float> dense = job_->dense().Values();
    rows[~base::Key{0}] = {dense.begin(), dense.end()};
    for (int i = 0; i < job_->dense().state_count(); ++i) {
      const std::span<const float> state = job_->dense().State(i);
      rows[~base::Key{1} - static_cast<base::Key>(i)] = {state.begin(), state.end()};
    }
    return rows;
  }

 private:
  static ps::FrameHeader Header(ps::Verb verb, uint64_t id, uint64_t step) {
    ps::FrameHeader header;
    header.set_verb(verb);
    header.set_id(id);
    header.set_step(step);
    header.set_samples(1);
    return header;
  }
  static void Append(std::string& body, float value) {
    body.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  int Ask(int rank, int lane, const ps::FrameHeader& header, const std::string& body) {
    wire::FrameWriter writer(header, body.size());
    writer.Append(body.data(), body.size());
    grpc::ByteBuffer request = writer.Finish();
    auto& session = sessions_[{rank, lane}];
    if (session == nullptr) session = std::make_unique<LaneSession>(*job_, RecoveryWorker(rank), lane);
    grpc::ByteBuffer reply = session->Answer(request);
    wire::FrameReader frame(reply);
    EXPECT_TRUE(frame.Open().ok());
    return frame.header().code();
  }

  absl::Status status_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<HostedJob> job_;
  std::map<std::pair<int, int>, std::unique_ptr<LaneSession>> sessions_;
};

class RecoveryTest : public testing::Test {
 protected:
  ~RecoveryTest() override { base::ArmFailpoints("").IgnoreError(); }
  std::unique_ptr<RecoveredLife> Begin(base::Mode mode, int workers) {
    spec_ = RecoverySpec(mode, workers);
    auto life = std::make_unique<RecoveredLife>(folder_.path(), spec_);
    for (int rank = 0; rank < workers; ++rank) EXPECT_TRUE(life->job().roster().Join(RecoveryWorker(rank)).ok());
    return life;
  }
  std::unique_ptr<RecoveredLife> Again() { return std::make_unique<RecoveredLife>(folder_.path(), spec_); }

  base::TestFolder folder_;
  JobSpec spec_;
};

TEST_F(RecoveryTest, ComesBackWithEveryPushAndDoesNoneTwice) {
  auto life = Begin(base::Mode::kAsync, 2);
  for (uint64_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(life->Push(static_cast<int>(i % 2), i, i, {{i % 5, 1.0f}, {100 + i, 0.5f}}), 0);
    EXPECT_EQ(life->PushDense(static_cast<int>(i % 2), i, i, 0.25f), 0);
  }
  const RecoveredLife::Rows before = life->rows();
  life.reset();
  life = Again();
  EXPECT_EQ(life->rows(), before);
  EXPECT_EQ(life->job().roster().Check(RecoveryWorker(1)), absl::OkStatus()) << "workers need not join again";
  EXPECT_EQ(life->Push(0, 20, 20, {{0, 1.0f}, {120, 0.5f}}), 0) << "sent again, because its answer was lost";
  EXPECT_EQ(life->Push(1, 7, 7, {{2, 1.0f}}), 0);
  EXPECT_EQ(life->rows(), before);
  EXPECT_EQ(life->Push(1, 21, 21, {{2, 1.0f}}), 0);
  EXPECT_NE(life->rows(), before);
}

TEST_F(RecoveryTest, AStepOfSyncIsAppliedWholeOrNotAtAll) {
  auto life = Begin(base::Mode::kSync, 2);
  EXPECT_EQ(life->Push(0, 1, 0, {{1, 1.0f}}), 0);
  EXPECT_EQ(life->Push(1, 1, 0, {{1, 2.0f}, {2, 1.0f}}), 0);
  const RecoveredLife::Rows one = life->rows();
  EXPECT_EQ(life->Push(0, 2, 1, {{1, 1.0f}}), 0) << "staged, and acknowledged";
  life.reset();
  life = Again();
  EXPECT_EQ(life->rows(), one);
  EXPECT_EQ(life->Push(0, 2, 1, {{1, 1.0f}}), 0) << "answered as done";
  EXPECT_EQ(life->Push(1, 2, 1, {{1, 3.0f}}), 0);
  const RecoveredLife::Rows two = life->rows();
  EXPECT_NE(two, one);
  life.reset();
  EXPECT_EQ(Again()->rows(), two);
}

TEST_F(RecoveryTest, APushOfSeveralFramesBeginsAnewWithItsFirst) {
  auto life = Begin(base::Mode::kSync, 1);
  EXPECT_EQ(life->Push(0, 1, 0, {{1, 1.0f}}, 1, /*more=*/true), 0);
  life.reset();
  life = Again();
  EXPECT_EQ(life->rows().size(), 3u) << "the dense parameters and their states";
  EXPECT_EQ(life->Push(0, 1, 0, {{1, 1.0f}}, 1, /*more=*/true), 0);
  EXPECT_EQ(life->Push(0, 2, 0, {{2, 1.0f}}, 2), 0);
  const RecoveredLife::Rows before = life->rows();
  EXPECT_TRUE(before.contains(1) && before.contains(2));
  life.reset();
  EXPECT_EQ(Again()->rows(), before);
}

TEST_F(RecoveryTest, ACheckpointMakesTheLogShortAndChangesNothing) {
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kSync}) {
    base::TestFolder folder;
    const JobSpec spec = RecoverySpec(mode, 2);
    auto life = std::make_unique<RecoveredLife>(folder.path(), spec);
    life->journal().SetSegmentBytes(1000);
    for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(life->job().roster().Join(RecoveryWorker(rank)).ok());
    uint64_t id = 0;
    const auto train = [&](int steps) {
      for (int i = 0; i < steps; ++i, ++id) {
        for (int rank = 0; rank < 2; ++rank) {
          EXPECT_EQ(life->Push(rank, id + 1, id, {{id % 7, 1.0f}, {id, 0.5f + static_cast<float>(rank)}}), 0);
          EXPECT_EQ(life->PushDense(rank, id + 1, id, 0.125f), 0);
        }
      }
    };
    for (int round = 0; round < 4; ++round) {
      auto compactor = LogCompactor::Start(life->job(), life->journal(), {});
      ASSERT_TRUE(compactor.ok()) << compactor.status();
      train(10);
      ASSERT_EQ((*compactor)->Save(), absl::OkStatus());
      train(3);
      EXPECT_EQ(life->Push(0, id + 1, id, {{1, 1.0f}}), 0) << "in sync, half a step that the snapshot does not have";
      ASSERT_EQ((*compactor)->Save(), absl::OkStatus());
      EXPECT_EQ(life->Push(1, id + 1, id, {{1, 1.0f}}), 0);
      EXPECT_EQ(life->PushDense(0, id + 1, id, 1), 0);
      EXPECT_EQ(life->PushDense(1, id + 1, id, 1), 0);
      ++id;
      train(2);
      const RecoveredLife::Rows before = life->rows();
      compactor->reset();
      life.reset();
      life = std::make_unique<RecoveredLife>(folder.path(), spec);
      ASSERT_EQ(life->status(), absl::OkStatus());
      EXPECT_EQ(life->rows(), before) << Name(mode) << ", round " << round;
    }
    // Two chains of a whole one and one of changes. What lies upon a damaged one is none either; the newest that is
    // left, and the log, are enough, to the last of the older chain.
    const RecoveredLife::Rows before = life->rows();
    std::string term = life->journal().folder();  // a new one with every life
    life.reset();
    const auto damage = [&](uint64_t save) {
      fs::resize_file(absl::StrCat(term, "/checkpoint/", save, "/data-000"), 20);
    };
    std::set<uint64_t> saves;
    for (const auto& entry : fs::directory_iterator(term + "/checkpoint"))
      saves.insert(std::stoull(entry.path().filename()));
    ASSERT_EQ(saves.size(), 4u);
    for (auto newest = saves.rbegin(); newest != std::prev(saves.rend(), 2); ++newest) {
      damage(*newest);
      life = std::make_unique<RecoveredLife>(folder.path(), spec);
      ASSERT_EQ(life->status(), absl::OkStatus()) << *newest;
      EXPECT_EQ(life->rows(), before) << Name(mode) << ", without " << *newest;
      term = life->journal().folder();
      EXPECT_LT(LocalSaves(term).List().value().back().number, *newest) << "the compactor would count on it";
      life.reset();
    }
    damage(*std::next(saves.begin()));
    life = std::make_unique<RecoveredLife>(folder.path(), spec);
    if (life->status().ok()) {
      EXPECT_EQ(life->rows(), before) << "a long segment of the log is still there";
    } else {
      EXPECT_EQ(life->status().code(), absl::StatusCode::kDataLoss);
    }
  }
}

TEST_F(RecoveryTest, ChainsOfCheckpointsAreShortAndTwoAreKept) {
  auto life = Begin(base::Mode::kAsync, 1);
  life->journal().SetSegmentBytes(1000);
  CompactorOptions options;
  options.chain = 3;
  auto compactor = LogCompactor::Start(life->job(), life->journal(), options).value();
  std::map<int, std::string> want;  // number → 'w'hole or 'c'hanges, of those that are kept
  for (uint64_t i = 1; i <= 11; ++i) {
    EXPECT_EQ(life->Push(0, i, i, {{i % 4, 1.0f}, {100 + i, 0.5f}}), 0);
    ASSERT_EQ(compactor->Save(), absl::OkStatus());
    std::string kept;
    const auto list = LocalSaves(life->journal().folder()).List().value();
    for (const LocalSaves::Kept& save : list)
      absl::StrAppend(&kept, kept.empty() ? "" : " ", save.number, save.whole ? "w" : "c");
    want[static_cast<int>(i)] = kept;
  }
  EXPECT_EQ(want[3], "1w 2c 3c");
  EXPECT_EQ(want[4], "1w 2c 3c 4w");
  EXPECT_EQ(want[6], "1w 2c 3c 4w 5c 6c");
  EXPECT_EQ(want[7], "4w 5c 6c 7w");
  EXPECT_EQ(want[11], "7w 8c 9c 10w 11c");
  const RecoveredLife::Rows before = life->rows();
  compactor.reset();
  life.reset();
  life = Again();
  EXPECT_EQ(life->rows(), before);
  // Which rows have changed since is not known to the one that came back.
  compactor = LogCompactor::Start(life->job(), life->journal(), options).value();
  EXPECT_EQ(life->Push(0, 12, 12, {{1, 1.0f}}), 0);
  ASSERT_EQ(compactor->Save(), absl::OkStatus());
  EXPECT_TRUE(LocalSaves(life->journal().folder()).List().value().back().whole);
}

TEST_F(RecoveryTest, ACheckpointOfTheJobDoesNotDisturbTheServersOwn) {
  auto life = Begin(base::Mode::kAsync, 1);
  auto compactor = LogCompactor::Start(life->job(), life->journal(), {}).value();
  for (uint64_t i = 1; i <= 8; ++i) {
    EXPECT_EQ(life->Push(0, 2 * i - 1, i, {{i, 1.0f}, {100, 1.0f}}), 0);
    ASSERT_EQ(life->job().snapshot().Begin(i, RecoveryWorker(0)), absl::OkStatus());
    EXPECT_EQ(compactor->Save().code(), absl::StatusCode::kUnavailable) << "one at a time";
    EXPECT_EQ(life->Push(0, 2 * i, i, {{i, 1.0f}, {200, 1.0f}}), 0);
    life->job().snapshot().End(i);
    ASSERT_EQ(compactor->Save(), absl::OkStatus());
  }
  const RecoveredLife::Rows before = life->rows();
  compactor.reset();
  life.reset();
  EXPECT_EQ(Again()->rows(), before) << "changes that came before, during and after a snapshot of the job are there";
}

// Pushes go on while checkpoints are written; afterwards the disk has them all.
TEST_F(RecoveryTest, ChangesGoOnWhileACheckpointIsWritten) {
  auto life = Begin(base::Mode::kAsync, 4);
  auto compactor = LogCompactor::Start(life->job(), life->journal(), {}).value();
  std::vector<std::thread> workers;
  for (int rank = 0; rank < 4; ++rank) {
    workers.emplace_back([&, rank] {
      LaneSession session(life->job(), RecoveryWorker(rank), kRowLane);
      for (uint64_t i = 1; i <= 300; ++i) {
        ps::FrameHeader header;
        header.set_verb(ps::PUSH);
        header.set_id(i);
        header.set_step(i);
        header.set_samples(1);
        ps::Section* section = header.add_sections();
        section->set_keys(1);
        section->set_width(kDim);
        const base::Key key = static_cast<base::Key>(rank) * 1000 + i % 50;
        const float grads[kDim] = {1, 1};
        wire::FrameWriter writer(header, sizeof key + sizeof grads);
        writer.Append(&key, sizeof key);
        writer.Append(grads, sizeof grads);
        grpc::ByteBuffer request = writer.Finish();
        session.Answer(request);
      }
    });
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(compactor->Save(), absl::OkStatus());
  for (std::thread& worker : workers) worker.join();
  const RecoveredLife::Rows before = life->rows();
  EXPECT_EQ(before.size(), 4 * 50 + 3u);
  compactor.reset();
  life.reset();
  EXPECT_EQ(Again()->rows(), before);
}

TEST_F(RecoveryTest, ACheckpointThatFailsLeavesAllAsItWas) {
  auto life = Begin(base::Mode::kAsync, 1);
  auto compactor = LogCompactor::Start(life->job(), life->journal(), {}).value();
  EXPECT_EQ(life->Push(0, 1, 1, {{1, 1.0f}}), 0);
  ASSERT_EQ(compactor->Save(), absl::OkStatus());
  EXPECT_EQ(life->Push(0, 2, 2, {{2, 1.0f}}), 0);
  for (const char* point : {"compactor.snapshot=error", "file.write=enospc", "file.fsync=error", "file.rename=error"}) {
    ASSERT_TRUE(base::ArmFailpoints(point).ok());
    EXPECT_FALSE(compactor->Save().ok()) << point;
    ASSERT_TRUE(base::ArmFailpoints("").ok());
    EXPECT_EQ(life->Push(0, 3, 3, {{3, 1.0f}}), 0) << point;
  }
  const RecoveredLife::Rows before = life->rows();
  ASSERT_EQ(compactor->Save(), absl::OkStatus());
  compactor.reset();
  life.reset();
  EXPECT_EQ(Again()->rows(), before);
}

TEST_F(RecoveryTest, WhoTakesPartAndWhereTheyMetIsRemembered) {
  auto life = Begin(base::Mode::kAsync, 2);
  const auto never = [] { return false; };
  std::thread other(
      [&] { EXPECT_TRUE(life->job().rendezvous().AllGather(RecoveryWorker(1), "here", 0, "b", {}, never).ok()); });
  EXPECT_TRUE(life->job().rendezvous().AllGather(RecoveryWorker(0), "here", 0, "a", {}, never).ok());
  other.join();
  life->job().roster().Leave(RecoveryWorker(1));
  life.reset();
  life = Again();
  const auto again = life->job().rendezvous().AllGather(RecoveryWorker(0), "here", 0, "a", {}, never);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(**again, (Rendezvous::Payloads{{0, "a"}, {1, "b"}})) << "one whose answer was lost asks again";
  EXPECT_FALSE(life->job().roster().Expected(1));
  EXPECT_TRUE(life->job().roster().Expected(0));
  EXPECT_TRUE(life->job().rendezvous().AllGather(RecoveryWorker(0), "here", 1, "c", {}, never).ok())
      << "worker 1 is not waited for";
}

TEST_F(RecoveryTest, AJobThatHasEndedIsForgotten) {
  auto life = Begin(base::Mode::kAsync, 1);
  EXPECT_EQ(life->Push(0, 1, 1, {{1, 1.0f}}), 0);
  life->job().End();
  life.reset();
  EXPECT_EQ(Again()->rows().size(), 3u) << "the dense parameters and their states";
}

TEST_F(RecoveryTest, TheFolderBelongsToOneServer) {
  auto life = Begin(base::Mode::kAsync, 1);
  const auto second = Journal::Open(folder_.path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(folder_.path()));
}

// Before the first checkpoint only the job's own log knows that they were there.
TEST_F(RecoveryTest, ALaneOrAJobThatIsGoneIsNotTakenForANewOne) {
  for (const std::string gone : {"lane0", "lane1", "job"}) {
    base::TestFolder folder;
    auto life = std::make_unique<RecoveredLife>(folder.path(), RecoverySpec(base::Mode::kAsync, 1));
    EXPECT_TRUE(life->job().roster().Join(RecoveryWorker(0)).ok());
    EXPECT_EQ(life->Push(0, 1, 1, {{1, 1.0f}}), 0);
    const std::string term = life->journal().folder();
    life.reset();
    for (const auto& entry : fs::directory_iterator(term + "/log"))
      if (entry.path().filename().string().starts_with(gone)) fs::remove(entry.path());
    const auto journal = Journal::Open(folder.path());
    if (gone == "job") {
      EXPECT_EQ(journal.status().code(), absl::StatusCode::kDataLoss);
      continue;
    }
    ASSERT_TRUE(journal.ok());
    const int lane = gone.back() - '0';
    const auto again = [](const Identity&, uint64_t, grpc::ByteBuffer&) { return absl::OkStatus(); };
    EXPECT_EQ((*journal)->OpenLane(lane, 0, again).code(), absl::StatusCode::kDataLoss) << gone;
    EXPECT_EQ((*journal)->OpenLane(1 - lane, 0, again), absl::OkStatus()) << gone;
  }
}

TEST_F(RecoveryTest, ALogThatIsGoneIsNotTakenForAnEmptyOne) {
  auto life = Begin(base::Mode::kAsync, 1);
  EXPECT_EQ(life->Push(0, 1, 1, {{1, 1.0f}}), 0);
  ASSERT_EQ(LogCompactor::Start(life->job(), life->journal(), {}).value()->Save(), absl::OkStatus());
  const std::string term = life->journal().folder();
  life.reset();
  for (const auto& entry : fs::directory_iterator(term + "/log"))
    if (entry.path().filename().string().starts_with("lane")) fs::remove(entry.path());
  EXPECT_EQ(Again()->status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace regatta::server
