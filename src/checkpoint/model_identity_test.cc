#include "checkpoint/model_identity.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/testing/test_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/manifest.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

using Lines = std::vector<std::string>;

ModelIdentity SomeModel() {
  return {"zoo",
          "dnn",
          {{"fc_sizes", "[16,8]"}, {"optimizer.class", "\"Adam\""}},
          {{"click"}, {"1", "2"}, "dense_feature", 13, ""}};
}

TEST(ModelIdentity, ASaveSaysWhatModelItHolds) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(5, 1);
  RunState run;
  run.model = SomeModel();
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), run).ok());
  const auto reader = CheckpointReader::Open(folder / "0");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->manifest().run.model, SomeModel());
  EXPECT_EQ(reader->ReadRunState().value().model, SomeModel());
  EXPECT_EQ(reader->manifest().Version(), kWholeVersion) << "programs from before read it";
}

// With one label a save is as those of programs that knew no more; with several there is a field more.
TEST(ModelIdentity, ASaveNamesTheLabels) {
  for (const bool several : {false, true}) {
    base::TestFolder folder;
    TestModel model;
    RunState run;
    run.model = SomeModel();
    if (several) run.model->schema.labels = {"click", "buy"};
    ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), run).ok());
    const std::string text = base::ReadFile(folder / "0/MANIFEST").value();
    EXPECT_TRUE(absl::StrContains(text, R"("label":"click")")) << text;
    EXPECT_EQ(absl::StrContains(text, R"("labels":["click","buy"])"), several) << text;
    EXPECT_EQ(absl::StrContains(text, R"("labels")"), several) << text;
    EXPECT_EQ(CheckpointReader::Open(folder / "0").value().manifest().run.model, run.model);
  }
}

TEST(ModelIdentity, AFieldThatCannotBeIsNamed) {
  base::TestFolder folder;
  TestModel model;
  RunState run;
  run.model = SomeModel();
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), run).ok());
  const std::string text = base::ReadFile(folder / "0/MANIFEST").value();
  for (const auto& [from, to, what] : std::vector<std::array<const char*, 3>>{
           {"\"front_end\":\"zoo\"", "\"front_end\":1", "model.front_end"},
           {"\"name\":\"dnn\",", "", "model.name"},
           {"\"dense_dim\":13", "\"dense_dim\":\"13\"", "model.schema.dense_dim"},
           {"\"fc_sizes\":\"[16,8]\"", "\"fc_sizes\":[16,8]", "model.hyper_parameters.fc_sizes"}}) {
    ASSERT_TRUE(absl::StrContains(text, from)) << from;
    const auto parsed = ParseManifest(absl::StrReplaceAll(text, {{from, to}}), ManifestChecksum::kIgnore);
    EXPECT_TRUE(absl::IsDataLoss(parsed.status())) << parsed.status();
    EXPECT_TRUE(absl::StrContains(parsed.status().message(), what)) << parsed.status();
  }
}

TEST(ModelIdentity, AnotherModelIsRefusedByItsName) {
  ModelIdentity other = SomeModel();
  EXPECT_EQ(CheckSameModel(SomeModel(), other), absl::OkStatus());
  other.name = "fm\n";
  const absl::Status status = CheckSameModel(SomeModel(), other);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "the save holds the model 'dnn' (zoo), and the model 'fm\\n' (zoo) is wanted");
}

TEST(ModelIdentity, DifferencesThatChangePredictionsAreListed) {
  ModelIdentity other = SomeModel();
  EXPECT_EQ(IdentityDifferences(SomeModel(), other), Lines());
  other.hyper_parameters["optimizer.class"] = "\"SGD\"";
  EXPECT_EQ(IdentityDifferences(SomeModel(), other), Lines()) << "of the optimizer";
  other.hyper_parameters.erase("fc_sizes");
  other.hyper_parameters["pooling"] = "\"mean\"";
  other.schema.sparse_slots = {"2", "1"};
  other.schema.labels = {"click", "buy"};
  EXPECT_EQ(IdentityDifferences(SomeModel(), other),
            (Lines{"hyper_parameters.fc_sizes: saved [16,8], wanted nothing",
                   "hyper_parameters.pooling: saved nothing, wanted \"mean\"", "label: saved click, wanted click buy",
                   "sparse slots: saved 1 2, wanted 2 1"}));
}

// Adam keeps two moments of each weight. A process that only reads weights does not need them.
TEST(ModelIdentity, WeightsAloneAreLoadedWithoutTheOptimizersState) {
  base::TestFolder folder;
  TestModel trained(16);
  trained.FillRandom(100, 1);
  ASSERT_TRUE(WriteCheckpoint(folder / "0", trained.view(), RunState{}).ok());
  table::ModelConfig config;
  for (const auto& table : trained.sparse) config.sparse.push_back(table->config());
  config.dense = trained.dense->config();
  const table::ModelConfig weights = config.WeightsOnly();
  std::vector<std::unique_ptr<table::SparseTable>> sparse;
  ModelTables tables;
  for (const table::SparseTableConfig& table : weights.sparse) {
    sparse.push_back(table::SparseTable::Create(table).value());
    tables.sparse.push_back(sparse.back().get());
  }
  const auto dense = table::DenseTable::Create(weights.dense).value();
  tables.dense = dense.get();
  ASSERT_EQ(CheckpointReader::Open(folder / "0").value().LoadInto(tables, LoadKind::kInference), absl::OkStatus());
  EXPECT_EQ(sparse[0]->row_width(), 16);
  EXPECT_EQ(dense->state_count(), 0);
  RowBits expected = BitsOf(*trained.sparse[0]);
  for (auto& [key, bits] : expected) bits.resize(16);
  EXPECT_EQ(BitsOf(*sparse[0]), expected);
}

}  // namespace
}  // namespace regatta::checkpoint
