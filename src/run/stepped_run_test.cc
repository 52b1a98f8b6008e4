#include "run/stepped_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/grouped_keys.h"
#include "base/testing/test_folder.h"
#include "checkpoint/local_model.h"
#include "checkpoint/run_record.h"
#include "run/alone_team.h"
#include "run/testing/thread_team.h"
#include "train/stepper.h"
#include "train/testing/embedded_job.h"

namespace regatta::run {
namespace {

using train::testing::Embedded;

constexpr uint64_t kBatches = 10;

// A process whose program makes its steps itself: step k moves the row of key k % 7.
struct Program {
  explicit Program(const std::string& path, checkpoint::OpenMode mode = checkpoint::OpenMode::kFresh)
      : tables(1), model({{tables.sparse.get()}, tables.dense.get()}), session(team) {
    if (!path.empty()) root = *checkpoint::SaveRoot::Open({.path = path, .mode = mode});
  }

  absl::Status Open(const EpochLoopOptions& options) {
    ASSIGN_OR_RETURN(
        start, FindRunStart({.resume = root != nullptr && !root->saves().empty(), .warm_start = {}, .identity = {}},
                            team, root.get(), model, reporter));
    RETURN_IF_ERROR(session.Begin({start.epoch, start.first_step, start.position}));
    run = std::make_unique<SteppedRun>(SteppedRunParts{.session = session,
                                                       .stop = stop,
                                                       .communicator = *tables.local,
                                                       .root = root.get(),
                                                       .model = model,
                                                       .reporter = reporter,
                                                       .add_state = add_state},
                                       train::Metric::kBinary, options, start);
    return absl::OkStatus();
  }

  absl::Status MakeStep(const SteppedRun::Pass& pass, uint64_t batch) {
    const uint64_t step = pass.first_step + batch;
    const base::GroupedKeys keys({step % 7});
    stepper.BeginStep({.step = step, .pass = pass.epoch, .batch = batch});
    const std::vector<base::TableKeys> wanted{keys.view()};
    RETURN_IF_ERROR(stepper.Pull(wanted).status());
    const auto grad = static_cast<float>(step + 1) / 64;
    const std::vector<base::TableGrads> grads{
        {.keys = keys.view(), .grads = {&grad, 1, 1}, .slot = {}, .show = {}, .click = {}}};
    const std::vector<base::DenseGrad> dense{{0, std::span(&grad, 1)}};
    return stepper.Commit(1, grads, dense);
  }

  // Trains the run to its end, or until `stop_after` steps are made.
  absl::Status Train(const EpochLoopOptions& options, uint64_t stop_after = UINT64_MAX) {
    signal_after = stop_after;
    RETURN_IF_ERROR(Open(options));
    for (;;) {
      ASSIGN_OR_RETURN(const auto pass, run->NextPass());
      if (!pass.has_value()) return absl::OkStatus();
      bool goes_on = !pass->stopped;
      for (uint64_t batch = pass->position.low; goes_on && batch < kBatches; ++batch) {
        RETURN_IF_ERROR(MakeStep(*pass, batch));
        ++steps;
        const float prediction = batch % 2 == 0 ? 0.75F : 0.25F, label = batch % 2 == 0 ? 1 : 0;
        ASSIGN_OR_RETURN(
            goes_on,
            run->AfterStep(
                {.samples = 1, .loss = 0.5, .predictions = std::span(&prediction, 1), .labels = std::span(&label, 1)}));
      }
      RETURN_IF_ERROR(run->EndPass(goes_on));
    }
  }

  std::vector<float> Rows() const {
    std::vector<float> rows;
    for (base::Key key = 0; key < 7; ++key) rows.push_back(tables.RowOf(key));
    return rows;
  }

  AloneTeam team;
  Embedded tables;
  checkpoint::LocalModel model;
  std::unique_ptr<checkpoint::SaveRoot> root;
  train::Reporter reporter{train::ReportStyle::kLines, train::ReportAuc::kYes};
  Session session;
  uint64_t steps = 0, signal_after = UINT64_MAX;
  StopControl stop{team, {.signal = [this] { return steps >= signal_after ? SIGTERM : 0; }}};
  RunStart start;
  AddState add_state;
  train::Stepper stepper{*tables.local, 0};
  std::unique_ptr<SteppedRun> run;  // the last: it uses the others
};

checkpoint::RunPhase RunPhaseIn(const std::string& root) { return checkpoint::ReadRunRecord(root).value().phase; }

TEST(SteppedRun, EveryEpochIsReportedAndSaved) {
  const base::TestFolder folder;
  Program program(folder / "saves");
  ASSERT_EQ(program.Train({.epochs = 3}), absl::OkStatus());
  EXPECT_EQ(program.steps, 3 * kBatches);
  EXPECT_EQ(program.run->end().kind, RunEnd::Kind::kFinished);
  ASSERT_EQ(program.run->reports().size(), 3u);
  EXPECT_EQ(program.run->reports()[2].samples, kBatches);
  EXPECT_DOUBLE_EQ(program.run->reports()[2].loss, 0.5);
  EXPECT_EQ(program.run->reports()[2].auc(), 1.0);
  for (const char* epoch : {"0", "1", "2"})
    EXPECT_TRUE(std::filesystem::exists(folder / absl::StrCat("saves/", epoch)));
  EXPECT_EQ(RunPhaseIn(folder / "saves"), checkpoint::RunPhase::kFinished);
}

TEST(SteppedRun, ARunThatIsStoppedAndResumedLearnsTheSame) {
  const base::TestFolder folder;
  Program whole(folder / "whole");
  ASSERT_EQ(whole.Train({.epochs = 2}), absl::OkStatus());
  for (const uint64_t steps : {1, 4, 9, 10, 11, 19}) {
    const std::string path = folder / absl::StrCat("stopped_", steps);
    {
      Program stopped(path);
      ASSERT_EQ(stopped.Train({.epochs = 2}, steps), absl::OkStatus());
      EXPECT_EQ(stopped.run->end().kind, RunEnd::Kind::kStopped);
      EXPECT_EQ(stopped.run->end().signal, SIGTERM);
      EXPECT_EQ(stopped.steps, steps);
      EXPECT_EQ(RunPhaseIn(path), checkpoint::RunPhase::kInterrupted);
    }
    Program resumed(path, checkpoint::OpenMode::kResume);
    ASSERT_EQ(resumed.Train({.epochs = 2}), absl::OkStatus());
    EXPECT_EQ(resumed.steps, 2 * kBatches - steps);
    EXPECT_EQ(resumed.run->reports().back().samples, kBatches);
    EXPECT_EQ(resumed.Rows(), whole.Rows()) << "stopped after " << steps;
  }
}

TEST(SteppedRun, CheckpointsHoldWhatTheProgramAdds) {
  const base::TestFolder folder;
  {
    Program program(folder / "saves");
    program.add_state = [&](checkpoint::RunState& state) {
      state.blobs["steps"] = absl::StrCat(program.steps);
      return absl::OkStatus();
    };
    ASSERT_EQ(program.Open({.epochs = 1, .checkpoints = {.steps = 3}}), absl::OkStatus());
    const auto pass = program.run->NextPass();
    ASSERT_EQ(pass.status(), absl::OkStatus());
    for (uint64_t batch = 0; batch < 8; ++batch) {
      ASSERT_EQ(program.MakeStep(**pass, batch), absl::OkStatus());
      ++program.steps;
      ASSERT_EQ(program.run->AfterStep({.samples = 1}).value_or(false), true);
    }
    program.run->Fail(absl::AbortedError("lightning"));
    EXPECT_TRUE(program.run->ended());
    EXPECT_EQ(RunPhaseIn(folder / "saves"), checkpoint::RunPhase::kInterrupted);
  }
  const auto saved = checkpoint::CheckpointReader::Open(folder / "saves/checkpoint/0-6");
  ASSERT_EQ(saved.status(), absl::OkStatus());
  const auto state = saved->ReadRunState();
  ASSERT_EQ(state.status(), absl::OkStatus());
  EXPECT_EQ(state->blobs.at("steps"), "6");
  Program resumed(folder / "saves", checkpoint::OpenMode::kResume);
  ASSERT_EQ(resumed.Train({.epochs = 1}), absl::OkStatus());
  EXPECT_EQ(resumed.steps, 4u) << "after the checkpoint behind the sixth step";
  EXPECT_TRUE(resumed.start.folder.ends_with("checkpoint/0-6")) << resumed.start.folder;
}

TEST(SteppedRun, AStateThatCannotBeSavedIsTheRunsError) {
  const base::TestFolder folder;
  Program program(folder / "saves");
  program.add_state = [](checkpoint::RunState&) { return absl::InternalError("no state today"); };
  EXPECT_EQ(program.Train({.epochs = 1}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RunPhaseIn(folder / "saves"), checkpoint::RunPhase::kInterrupted);
}

TEST(SteppedRun, ARunMayEndBetweenTwoEpochs) {
  const base::TestFolder folder;
  Program program(folder / "saves");
  ASSERT_EQ(program.Open({.epochs = 5}), absl::OkStatus());
  auto pass = program.run->NextPass();
  ASSERT_EQ(program.MakeStep(**pass, 0), absl::OkStatus());
  ASSERT_EQ(program.run->AfterStep({.samples = 1}).value_or(false), true);
  EXPECT_EQ(program.run->Finish().code(), absl::StatusCode::kFailedPrecondition) << "the epoch is under way";
  ASSERT_EQ(program.run->EndPass(true), absl::OkStatus());
  ASSERT_EQ(program.run->Finish(), absl::OkStatus());
  EXPECT_EQ(RunPhaseIn(folder / "saves"), checkpoint::RunPhase::kFinished);
  EXPECT_TRUE(std::filesystem::exists(folder / "saves/0"));
}

TEST(SteppedRun, WrongUseIsAnError) {
  Program program("");
  ASSERT_EQ(program.Open({.epochs = 1}), absl::OkStatus());
  EXPECT_EQ(program.run->AfterStep({.samples = 1}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(program.run->EndPass(true).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(program.run->NextPass().ok());
  const std::vector<float> three{0, 1, 0}, two{0, 1};
  EXPECT_EQ(program.run->AfterStep({.samples = 3, .predictions = three, .labels = two}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Two workers over one pair of tables: rounds of the loops' threads while the programs wait for them.
TEST(SteppedRun, WorkersEndAnEpochTogether) {
  ThreadTeam team(2);
  Embedded tables(2);
  std::vector<uint64_t> samples;
  std::vector<std::thread> workers;
  for (int rank = 0; rank < 2; ++rank) {
    workers.emplace_back([&, rank] {
      const auto member = team.Join(rank);
      checkpoint::LocalModel model({{tables.sparse.get()}, tables.dense.get()});
      train::Reporter reporter(train::ReportStyle::kLines, train::ReportAuc::kYes);
      Session session(*member);
      ASSERT_EQ(session.Begin({}), absl::OkStatus());
      StopControl stop(*member, {.signal = [] { return 0; }});
      client::LocalClient client({tables.sparse.get()}, tables.dense.get(), table::NanPolicy::kAbort);
      comm::Local local(client, 1);
      EpochLoopOptions options{.epochs = 2};
      options.servers = ServerCheckpoints{nullptr, {}};
      SteppedRun run({.session = session, .stop = stop, .communicator = local, .model = model, .reporter = reporter},
                     train::Metric::kBinary, options, {});
      for (int epoch = 0; epoch < 2; ++epoch) {
        const auto pass = run.NextPass();
        ASSERT_EQ(pass.status(), absl::OkStatus());
        const std::vector<float> values(static_cast<size_t>(rank) + 1, 0.5F);
        ASSERT_EQ(run.AfterStep({.samples = values.size(), .predictions = values, .labels = values}).status(),
                  absl::OkStatus());
        ASSERT_EQ(run.EndPass(true), absl::OkStatus());
      }
      EXPECT_FALSE(run.NextPass().value().has_value());
      if (rank == 0)
        for (const train::EpochReport& report : run.reports()) samples.push_back(report.samples);
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(samples, (std::vector<uint64_t>{3, 3}));
}

}  // namespace
}  // namespace regatta::run
