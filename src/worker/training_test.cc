#include "worker/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <string>

#include "base/mutex.h"
#include "base/testing/test_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "fleet/testing/run_fleet.h"
#include "worker/worker_data.h"

namespace regatta::worker {
namespace {

using base::TestFolder;
using fleet::Fleet;
using testing::Each;

// A logit that is the sum of a sample's embeddings and a bias.
class Sum : public model::Model {
 public:
  explicit Sum(base::IdSpace id_space = base::IdSpace::kShared) {
    spec_.schema = data::CriteoSchema(2, 0);
    spec_.schema.id_space = id_space;
    spec_.AddEmbedding({.table = "embedding", .dim = 1, .init = model::Init::Uniform(1)});
    spec_.AddDense("bias", {1}, model::Init::Constant(0));
  }
  model::Output Forward(const model::Input& in) const override {
    return model::BinaryOutput(in.embeddings[0].sum(1) + in.dense[0], in.labels);
  }
};

// Four files of 50 samples; a click where the first slot's id is even.
void WriteData(const std::string& folder) {
  for (int file = 0; file < 4; ++file) {
    std::ofstream out(folder + "/part-" + std::to_string(file));
    for (int i = 0; i < 50; ++i) out << "click:" << (i + file + 1) % 2 << " 1:" << i + file << " 2:" << i % 7 << "\n";
  }
}

TrainingOptions Quiet() {
  TrainingOptions options;
  options.optimizer.sparse = {.name = "adagrad", .learning_rate = 1};
  options.optimizer.dense = {.name = "adagrad", .learning_rate = 0.1};
  options.worker.mode = base::Mode::kSync;
  options.worker.wait_timeout = std::chrono::seconds(20);
  options.print_interval = 0;
  return options;
}

std::unique_ptr<Fleet> Alone() { return Fleet::Init(cluster::ClusterSpec{}).value(); }

absl::StatusOr<std::unique_ptr<data::Dataset>> Open(const Fleet& fleet, const Sum& model, const std::string& folder) {
  return OpenDataset(fleet, model, folder, {.batch_size = 10});
}

// Slot 1 has the ids 0 … 52, slot 2 has 0 … 6.
TEST(Training, TheSchemaSaysWhetherSlotsShareIds) {
  const TestFolder files, saves;
  WriteData(files.path());
  for (const auto& [id_space, rows] : {std::pair{base::IdSpace::kShared, 53u}, {base::IdSpace::kSlot, 53u + 7u}}) {
    const Sum model(id_space);
    const auto fleet = Alone();
    const auto training = Training::Start(*fleet, model, Quiet()).value();
    const auto data = Open(*fleet, model, files.path()).value();
    ASSERT_TRUE(training->TrainEpoch(*data).ok());
    const std::string save = saves / std::string(base::Name(id_space));
    ASSERT_EQ(training->Save(save), absl::OkStatus());
    const auto reader = checkpoint::CheckpointReader::Open(save);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->manifest().sparse.at(0).config.id_space, id_space);
    EXPECT_EQ(reader->manifest().sparse.at(0).rows, rows);
  }
}

TEST(Training, AloneItLearnsSavesAndGoesOn) {
  const TestFolder files, saves;
  WriteData(files.path());
  const Sum model;
  const auto fleet = Alone();
  const auto training = Training::Start(*fleet, model, Quiet()).value();
  const auto data = Open(*fleet, model, files.path()).value();
  const auto before = training->Evaluate(*data);
  ASSERT_TRUE(before.ok()) << before.status();
  for (int epoch = 0; epoch < 10; ++epoch) {
    const auto report = training->TrainEpoch(*data);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->epoch, static_cast<uint64_t>(epoch));
    EXPECT_EQ(report->samples, 200u);
  }
  EXPECT_EQ(training->epoch(), 10u);
  EXPECT_EQ(training->step(), 200u);
  const auto after = training->Evaluate(*data);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_LT(after->loss, 0.7 * before->loss);
  EXPECT_GT(*after->auc(), 0.95);
  EXPECT_EQ(training->step(), 200u) << "an evaluation is no step";
  ASSERT_EQ(training->Save(saves / "model"), absl::OkStatus());
  const auto reader = checkpoint::CheckpointReader::Open(saves / "model");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->manifest().run.epoch, 9u);
  EXPECT_EQ(reader->manifest().run.epoch_state, checkpoint::EpochState::kFinished);
  EXPECT_EQ(reader->manifest().run.step, 200u);

  const auto other = Alone();
  const auto again = Training::Start(*other, model, Quiet()).value();
  ASSERT_EQ(other->LoadModel(saves / "model"), absl::OkStatus());
  const auto loaded = again->Evaluate(*Open(*other, model, files.path()).value());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->auc(), after->auc());
  EXPECT_EQ(loaded->loss, after->loss);
}

// Predictions for data without labels are those of a model that saw labels while it trained; several threads.
TEST(Training, PredictsWithoutLabels) {
  const TestFolder files, bare;
  WriteData(files.path());
  std::ofstream(bare / "part-0") << "1:3 2:3\n1:4 2:4\n1:52 2:6\n";
  std::ofstream(files / "part-4") << "click:0 1:3 2:3\nclick:1 1:4 2:4\nclick:0.5 1:52 2:6\n";
  const Sum model;
  const auto fleet = Alone();
  TrainingOptions options = Quiet();
  options.worker.threads = 3;
  const auto training = Training::Start(*fleet, model, options).value();
  ASSERT_TRUE(training->TrainEpoch(*Open(*fleet, model, files.path()).value()).ok());
  const auto predictions = [&](const std::string& path, data::LabelUse use) {
    data::DatasetOptions reading{.batch_size = 1};
    reading.schema.label_use = use;
    const auto data = OpenDataset(*fleet, model, path, reading).value();
    std::map<uint64_t, float> by_batch;
    EXPECT_EQ(training->Predict(*data,
                                [&](const data::Batch& batch, train::Predictions outputs) {
                                  by_batch[batch.index] = outputs[0].floats()[0];
                                  return absl::OkStatus();
                                }),
              absl::OkStatus());
    return by_batch;
  };
  const std::map<uint64_t, float> got = predictions(bare / "part-0", data::LabelUse::kAbsent);
  EXPECT_EQ(got.size(), 3u);
  EXPECT_NE(got.at(0), got.at(1));
  EXPECT_EQ(got, predictions(files / "part-4", data::LabelUse::kRead));
  EXPECT_EQ(got, predictions(files / "part-4", data::LabelUse::kAbsent));
  EXPECT_EQ(training->epoch(), 1u);
  const auto data = Open(*fleet, model, files.path()).value();
  EXPECT_EQ(training->Predict(*data, [](const auto&, auto) { return absl::DataLossError("the disk is full"); }),
            absl::DataLossError("the disk is full"));
  data::DatasetOptions unlabelled;
  unlabelled.schema.label_use = data::LabelUse::kAbsent;
  const auto nothing = OpenDataset(*fleet, model, bare / "part-0", unlabelled).value();
  EXPECT_TRUE(absl::IsInvalidArgument(training->Evaluate(*nothing).status())) << "there is nothing to measure against";
}

// Metrics of different outputs would be merged otherwise.
TEST(Training, WorkersWithOtherOutputsAreRefusedWhenTheyJoin) {
  class Named : public Sum {
   public:
    explicit Named(const std::string& output) {
      spec_.outputs = {{.name = output, .metric = train::Metric::kRegression}};
    }
  };
  std::string refusal;  // of worker 1
  const auto ends = fleet::RunFleet({.servers = 1, .workers = 2}, [&](Fleet& fleet) -> absl::Status {
    const Named buy("buy"), stay("stay");
    if (!fleet.is_first_worker()) refusal = std::string(Training::Start(fleet, stay, Quiet()).status().message());
    return Training::Start(fleet, buy, Quiet()).status();
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
  EXPECT_THAT(refusal, testing::HasSubstr("the model's outputs: \"buy (regression) of the first label\" here"));
}

TEST(Training, EmbeddingsOfOneTableThatDifferAreRefusedBeforeAnythingIsTrained) {
  class Twice : public Sum {
   public:
    Twice() { spec_.AddEmbedding({.table = "embedding", .dim = 2, .init = model::Init::Constant(0)}); }
  } twice;
  const auto fleet = Alone();
  const auto refused = Training::Start(*fleet, twice, Quiet());
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("two embeddings in table 'embedding', of 1 and 2 floats a row"));
}

TEST(Training, EveryWorkerReportsTheMetricsOfAll) {
  const TestFolder files, saves;
  WriteData(files.path());
  const Sum model;
  const auto alone = Alone();
  const auto training = Training::Start(*alone, model, Quiet()).value();
  const auto all = Open(*alone, model, files.path()).value();
  ASSERT_EQ(training->TrainEpoch(*all).status(), absl::OkStatus());
  ASSERT_EQ(training->Save(saves / "model"), absl::OkStatus());
  const auto want = training->Evaluate(*all);
  ASSERT_TRUE(want.ok()) << want.status();
  EXPECT_NE(*want->auc(), 0.5);

  base::Mutex mu;
  std::vector<train::EpochReport> evaluated, trained;
  const auto ends = fleet::RunFleet({.servers = 2, .workers = 3}, [&](Fleet& fleet) -> absl::Status {
    ASSIGN_OR_RETURN(const auto mine, Training::Start(fleet, model, Quiet()));
    RETURN_IF_ERROR(fleet.LoadModel(saves / "model"));
    ASSIGN_OR_RETURN(const auto data, Open(fleet, model, files.path()));
    ASSIGN_OR_RETURN(const train::EpochReport first, mine->Evaluate(*data));
    ASSIGN_OR_RETURN(const train::EpochReport second, mine->TrainEpoch(*data));
    base::MutexLock lock(mu);
    evaluated.push_back(first);
    trained.push_back(second);
    return absl::OkStatus();
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
  ASSERT_EQ(evaluated.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(evaluated[i].samples, 200u);
    EXPECT_DOUBLE_EQ(*evaluated[i].auc(), *want->auc());
    EXPECT_NEAR(evaluated[i].loss, want->loss, 1e-6);
    EXPECT_EQ(trained[i].auc(), trained[0].auc());
    EXPECT_EQ(trained[i].loss, trained[0].loss);
  }
}

// So many epochs of two workers with servers that start from `init`; saved to `dir`.
void TrainWithServers(int epochs, const std::string& init, const std::string& files, const std::string& dir) {
  const Sum model;
  TrainingOptions options = Quiet();
  options.optimizer.schedule = {.name = "exponential", .decay_steps = 3, .decay_rate = 0.9};
  const auto ends = fleet::RunFleet({.servers = 2, .workers = 2, .init = init}, [&](Fleet& fleet) -> absl::Status {
    ASSIGN_OR_RETURN(const auto training, Training::Start(fleet, model, options));
    ASSIGN_OR_RETURN(
        const auto data,
        OpenDataset(fleet, model, files,
                    {.kind = data::DatasetKind::kInMemory, .batch_size = 10, .shuffle = data::Shuffle::kLocal}));
    for (int epoch = 0; epoch < epochs; ++epoch) RETURN_IF_ERROR(training->TrainEpoch(*data).status());
    return training->Save(dir);
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
}

TEST(Training, SchedulesAndShufflesGoOnFromASaveToo) {
  const TestFolder files, saves;
  WriteData(files.path());
  TrainWithServers(2, "", files.path(), saves / "straight");
  TrainWithServers(1, "", files.path(), saves / "half");
  TrainWithServers(1, saves / "half", files.path(), saves / "rest");
  EXPECT_NE(base::FilesIn(saves / "half"), base::FilesIn(saves / "straight"));
  EXPECT_EQ(base::FilesIn(saves / "rest"), base::FilesIn(saves / "straight")) << "every byte, the manifest included";
}

// A dataset that breaks in a pass, before a batch.
class Breaking : public data::Dataset {
 public:
  Breaking(std::unique_ptr<data::Dataset> inner, uint64_t pass, int batches)
      : inner_(std::move(inner)), pass_(pass), left_(batches) {}
  absl::Status BeginPass(const base::DataPosition& done) override {
    in_pass_ = done.pass == pass_;
    return inner_->BeginPass(done);
  }
  absl::StatusOr<std::unique_ptr<data::Batch>> Next() override {
    if (in_pass_ && left_-- <= 0) return absl::DataLossError("breaks here");
    return inner_->Next();
  }
  void Interrupt() override { inner_->Interrupt(); }
  void Recycle(std::unique_ptr<data::Batch> batch) override { inner_->Recycle(std::move(batch)); }
  absl::Status EndPass() override { return inner_->EndPass(); }
  data::Progress progress() const override { return inner_->progress(); }

 private:
  const std::unique_ptr<data::Dataset> inner_;
  const uint64_t pass_;
  int left_;
  bool in_pass_ = false;
};

// Where a worker gives up; another one then takes its place.
enum class GivesUp : uint8_t { kNever, kInAnEpoch, kBeforeASave, kAfterASave, kAfterAnEvaluation };

// Three epochs of two workers, an evaluation and a save after each. What the last evaluation was.
double TrainAndReplace(GivesUp gives_up, int rank, const std::string& files, const std::string& dir) {
  const Sum model;
  const TestFolder data_dir;
  TrainingOptions options = Quiet();
  options.worker.on_loss = base::LossPolicy::kAwait;
  options.optimizer.schedule = {.name = "exponential", .decay_steps = 3, .decay_rate = 0.9};
  base::Mutex mu;
  double loss = 0;
  const auto life = [&](Fleet& fleet, GivesUp point) -> absl::Status {
    const absl::Status gone = absl::CancelledError("gone");
    ASSIGN_OR_RETURN(const auto training, Training::Start(fleet, model, options));
    ASSIGN_OR_RETURN(std::unique_ptr<data::Dataset> data, Open(fleet, model, files));
    RETURN_IF_ERROR(training->Evaluate(*data).status());
    if (point == GivesUp::kInAnEpoch) data = std::make_unique<Breaking>(std::move(data), 1, 4);
    while (training->epoch() < 3) {
      const bool here = training->epoch() == 1;
      ASSIGN_OR_RETURN(const train::EpochReport report, training->TrainEpoch(*data));
      if (here && point == GivesUp::kBeforeASave) return gone;
      RETURN_IF_ERROR(training->Save(absl::StrCat(dir, "/", report.epoch)));
      if (here && point == GivesUp::kAfterASave) return gone;
      ASSIGN_OR_RETURN(const train::EpochReport evaluated, training->Evaluate(*data));
      if (here && point == GivesUp::kAfterAnEvaluation) return gone;
      base::MutexLock lock(mu);
      loss = evaluated.loss;
    }
    return absl::OkStatus();
  };
  const auto ends =
      fleet::RunFleet({.servers = 2, .workers = 2, .data_dir = data_dir.path()}, [&](Fleet& fleet) -> absl::Status {
        if (gives_up == GivesUp::kNever || fleet.worker_index() != rank) return life(fleet, GivesUp::kNever);
        const absl::Status end = life(fleet, gives_up);
        EXPECT_FALSE(end.ok());
        fleet.StopWorker(end);
        const auto next = fleet::MakeFleet(cluster::Role::kWorker, rank, 2, fleet.server_endpoints());
        const absl::Status replaced = life(*next, GivesUp::kNever);
        next->StopWorker(replaced);
        return replaced;
      });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
  return loss;
}

TEST(Training, AWorkerThatIsReplacedGoesOnWhereItWas) {
  const TestFolder files, saves;
  WriteData(files.path());
  const double want = TrainAndReplace(GivesUp::kNever, 0, files.path(), saves / "straight");
  for (const int rank : {0, 1}) {
    for (const GivesUp point :
         {GivesUp::kInAnEpoch, GivesUp::kBeforeASave, GivesUp::kAfterASave, GivesUp::kAfterAnEvaluation}) {
      const std::string dir = absl::StrCat(saves.path(), "/", rank, "_", static_cast<int>(point));
      EXPECT_EQ(TrainAndReplace(point, rank, files.path(), dir), want) << dir;
      for (const char* epoch : {"/0", "/1", "/2"})
        EXPECT_EQ(base::FilesIn(dir + epoch), base::FilesIn(saves / "straight" + epoch)) << dir << epoch;
    }
  }
}

TEST(Training, AStopAtOneWorkerEndsTheEpochOfAll) {
  const TestFolder files;
  WriteData(files.path());
  const Sum model;
  const auto ends = fleet::RunFleet({.servers = 1, .workers = 2}, [&](Fleet& fleet) -> absl::Status {
    TrainingOptions options = Quiet();
    if (fleet.worker_index() == 1) options.stop = [&fleet] { return fleet.wire_bytes() > 5000; };
    ASSIGN_OR_RETURN(const auto training, Training::Start(fleet, model, options));
    ASSIGN_OR_RETURN(const auto data, Open(fleet, model, files.path()));
    for (int epoch = 0; epoch < 1'000'000; ++epoch) RETURN_IF_ERROR(training->TrainEpoch(*data).status());
    return absl::OkStatus();
  });
  for (const absl::Status& end : ends) EXPECT_EQ(end.code(), absl::StatusCode::kCancelled) << end;
}

TEST(Training, AWorkerWithoutFilesTakesPart) {
  const TestFolder files;
  WriteData(files.path());
  const Sum model;
  const auto ends = fleet::RunFleet({.servers = 1, .workers = 5}, [&](Fleet& fleet) -> absl::Status {
    ASSIGN_OR_RETURN(const auto training, Training::Start(fleet, model, Quiet()));
    ASSIGN_OR_RETURN(const auto data, Open(fleet, model, files.path()));
    ASSIGN_OR_RETURN(const train::EpochReport report, training->TrainEpoch(*data));
    EXPECT_EQ(report.samples, 200u);
    return absl::OkStatus();
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
}

}  // namespace
}  // namespace regatta::worker
