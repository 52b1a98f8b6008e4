#include "run/epoch_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/testing/test_folder.h"
#include "checkpoint/local_model.h"
#include "checkpoint/run_record.h"
#include "run/alone_team.h"
#include "train/testing/embedded_job.h"
#include "train/testing/logistic_net.h"

namespace regatta::run {
namespace {

using train::testing::Embedded;
using train::testing::LogisticNet;
using train::testing::Numbers;

// Counts what it is told, and knows of a signal after so many steps.
struct Watcher : RunObserver {
  void BeginPass(uint64_t) override { ++begun; }
  void AfterStep(const train::PassObserver::Step&, train::PassMeter&) override { ++steps; }
  void EndPass() override {}
  void EpochTrained(train::EpochReport report) override { samples.push_back(report.samples); }
  absl::Status OnBadLoss(uint64_t epoch, const data::Batch& batch, const absl::Status&) override {
    return absl::AbortedError(absl::StrCat("epoch ", epoch, ", batch ", batch.index, " is bad"));
  }
  int Signal() const { return steps >= signal_after ? SIGTERM : 0; }

  int begun = 0;
  uint64_t steps = 0, signal_after = UINT64_MAX;
  std::vector<uint64_t> samples;  // of each epoch
};

// The same with an output that has no AUC.
class Regression : public LogisticNet {
 public:
  Regression() { spec_.outputs = {{.name = "share", .metric = train::Metric::kRegression}}; }
};

// A process that trains alone: tables of its own, saves under `root`.
struct Process {
  explicit Process(const std::string& path, checkpoint::OpenMode mode = checkpoint::OpenMode::kFresh)
      : tables(1), model({{tables.sparse.get()}, tables.dense.get()}), session(team) {
    root = *checkpoint::SaveRoot::Open({.path = path, .mode = mode});
  }

  absl::StatusOr<RunEnd> Run(const EpochLoopOptions& options, uint64_t batches = 10, uint64_t bad = UINT64_MAX) {
    ASSIGN_OR_RETURN(const RunStart start, FindRunStart({.resume = true, .warm_start = "", .identity = {}}, team,
                                                        root.get(), model, reporter));
    RETURN_IF_ERROR(session.Begin({start.epoch, start.first_step, start.position}));
    Numbers data(batches, bad);
    StopControl stop(team, {.signal = [this] { return watcher.Signal(); }});
    train::Trainer trainer(nets, *tables.local, tables.options);
    EpochLoop loop({.session = session,
                    .stop = stop,
                    .train_pass =
                        [&](const base::DataPosition& done, uint64_t first_step, train::PassObserver& observer) {
                          return trainer.RunPass(data, base::StepKind::kTrain, done, first_step, observer);
                        },
                    .spec = spec,
                    .validator = &trainer,
                    .validation = validation,
                    .root = root.get(),
                    .model = model,
                    .reporter = reporter,
                    .observer = watcher},
                   options, start);
    return loop.Run();
  }

  std::vector<float> Rows() const {
    std::vector<float> rows;
    for (base::Key key = 0; key < 7; ++key) rows.push_back(tables.RowOf(key));
    for (base::Key key = 1000; key < 1007; ++key) rows.push_back(tables.RowOf(key));
    return rows;
  }

  AloneTeam team;
  Embedded tables;
  checkpoint::LocalModel model;
  std::unique_ptr<checkpoint::SaveRoot> root;
  train::Reporter reporter{train::ReportStyle::kLines, train::ReportAuc::kYes};
  Session session;
  Watcher watcher;
  data::Dataset* validation = nullptr;
  train::NetMaker nets = train::testing::NetsOf<LogisticNet>();
  train::NetSpec spec = LogisticNet().spec();
};

checkpoint::RunPhase PhaseOf(const std::string& root) { return checkpoint::ReadRunRecord(root).value().phase; }

TEST(EpochLoop, EveryEpochIsTrainedReportedAndSaved) {
  const base::TestFolder folder;
  Process process(folder / "saves");
  const auto end = process.Run({.epochs = 3});
  ASSERT_EQ(end.status(), absl::OkStatus());
  EXPECT_EQ(end->kind, RunEnd::Kind::kFinished);
  EXPECT_EQ(process.watcher.begun, 3);
  EXPECT_THAT(process.watcher.samples, ::testing::ElementsAre(40, 40, 40));
  for (const char* epoch : {"0", "1", "2"})
    EXPECT_TRUE(std::filesystem::exists(folder / absl::StrCat("saves/", epoch)));
  EXPECT_EQ(PhaseOf(folder / "saves"), checkpoint::RunPhase::kFinished);
}

// At every step of two epochs: the first, the last of an epoch, the first of the next one.
TEST(EpochLoop, ARunThatIsStoppedAndResumedLearnsTheSame) {
  const base::TestFolder folder;
  Process whole(folder / "whole");
  ASSERT_EQ(whole.Run({.epochs = 2}).status(), absl::OkStatus());
  for (const uint64_t steps : {1, 4, 9, 10, 11, 19}) {
    const std::string path = folder / absl::StrCat("stopped_", steps);
    {
      Process stopped(path);
      stopped.watcher.signal_after = steps;
      const auto end = stopped.Run({.epochs = 2});
      ASSERT_EQ(end.status(), absl::OkStatus());
      EXPECT_EQ(end->kind, RunEnd::Kind::kStopped) << steps;
      EXPECT_EQ(end->signal, SIGTERM);
      EXPECT_EQ(stopped.watcher.steps, steps);
      EXPECT_EQ(PhaseOf(path), checkpoint::RunPhase::kInterrupted);
    }
    Process resumed(path, checkpoint::OpenMode::kResume);
    ASSERT_EQ(resumed.Run({.epochs = 2}).status(), absl::OkStatus());
    EXPECT_EQ(resumed.watcher.steps, 20 - steps);
    EXPECT_EQ(resumed.watcher.samples.back(), 40u) << "what the stopped run had counted is in the report";
    EXPECT_EQ(resumed.Rows(), whole.Rows()) << "stopped after " << steps;
  }
}

TEST(EpochLoop, AStoppedRunGoesOnCountingOutputsOfEveryKind) {
  const base::TestFolder folder;
  const auto run = [&](Process& process) {
    process.nets = train::testing::NetsOf<Regression>();
    process.spec = Regression().spec();
    return process.Run({.epochs = 1}).status();
  };
  {
    Process stopped(folder / "saves");
    stopped.watcher.signal_after = 4;
    ASSERT_EQ(run(stopped), absl::OkStatus());
  }
  Process resumed(folder / "saves", checkpoint::OpenMode::kResume);
  ASSERT_EQ(run(resumed), absl::OkStatus());
  EXPECT_EQ(resumed.watcher.steps, 6u);
  EXPECT_EQ(resumed.watcher.samples.back(), 40u);
}

TEST(EpochLoop, WithoutAnAucTheBestEpochHasTheLeastLoss) {
  const auto best_of = [](bool regression) {
    const base::TestFolder folder;
    Numbers validation(2);
    Process process(folder / "saves");
    process.validation = &validation;
    if (regression) {
      process.nets = train::testing::NetsOf<Regression>();
      process.spec = Regression().spec();
    }
    EXPECT_EQ(process.Run({.epochs = 6}).status(), absl::OkStatus());
    return checkpoint::ReadBest(folder / "saves").value();
  };
  EXPECT_EQ(best_of(true), "5") << "the loss falls until the last epoch";
  EXPECT_NE(best_of(false), "5") << "and the AUC does not rise that long";
}

TEST(EpochLoop, CheckpointsWithinAnEpochAreResumedFrom) {
  const base::TestFolder folder;
  {
    Process process(folder / "saves");
    const auto end = process.Run({.epochs = 1, .checkpoints = {.steps = 3}}, 10, /*bad=*/8);
    EXPECT_EQ(end.status(), absl::AbortedError("epoch 0, batch 8 is bad"));
    EXPECT_EQ(PhaseOf(folder / "saves"), checkpoint::RunPhase::kInterrupted);
  }
  Process resumed(folder / "saves", checkpoint::OpenMode::kResume);
  ASSERT_EQ(resumed.Run({.epochs = 1}).status(), absl::OkStatus());
  EXPECT_EQ(resumed.watcher.steps, 4u) << "after the checkpoint behind the sixth step";
  Process whole(folder / "whole");
  ASSERT_EQ(whole.Run({.epochs = 1}).status(), absl::OkStatus());
  EXPECT_EQ(resumed.Rows(), whole.Rows());
}

TEST(EpochLoop, TrainingEndsWhenValidationGetsNoBetter) {
  const base::TestFolder folder;
  Numbers validation(2);
  Process process(folder / "saves");
  process.validation = &validation;
  const auto end = process.Run({.epochs = 1000, .early_stop = 2});
  ASSERT_EQ(end.status(), absl::OkStatus());
  EXPECT_EQ(end->kind, RunEnd::Kind::kFinished);
  uint64_t best = 0;
  ASSERT_TRUE(absl::SimpleAtoi(checkpoint::ReadBest(folder / "saves").value(), &best));
  EXPECT_EQ(process.session.epoch(), best + 1 + 2) << "two epochs that were not better";
  EXPECT_EQ(process.watcher.begun, static_cast<int>(process.session.epoch()));
}

}  // namespace
}  // namespace regatta::run
