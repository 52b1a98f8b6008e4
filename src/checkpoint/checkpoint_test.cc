#include <limits>

#include "absl/strings/match.h"
#include "base/failpoint.h"
#include "base/testing/test_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/row_sorter.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

RunState SomeRun() {
  RunState run;
  run.epoch = 3;
  run.epoch_state = EpochState::kFinished;
  run.position = {3, 812, 0x8000000000000005ULL};
  run.step = 40812;
  run.lane_count = 4;
  run.settings_hash = 0xFEDCBA9876543210ULL;
  run.blobs = {{"auc", std::string(100000, '\x7f') + std::string(3, '\0')}, {"empty", ""}, {"one", "x"}};
  return run;
}

absl::Status Save(const std::string& folder, const TestModel& model, const RunState& run = SomeRun()) {
  return WriteCheckpoint(folder, model.view(), run);
}

absl::Status Load(const std::string& folder, const TestModel& model, LoadKind kind = LoadKind::kTraining) {
  ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  return reader.LoadInto(model.tables(), kind);
}

TEST(Checkpoint, GivesBackEveryBit) {
  base::TestFolder folder;
  TestModel model(5, {1000, 30});
  model.FillRandom(20000, 1);
  SetRow(*model.sparse[0], 0,
         {std::bit_cast<uint32_t>(-0.0f), 1 /* the least denormal */, 0x7F800001 /* a signalling NaN with a payload */,
          0xFFC12345, std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity())});
  SetRow(*model.sparse[0], ~base::Key{0}, {1});
  ASSERT_TRUE(Save(folder / "0", model).ok());

  TestModel loaded(5, {1000, 30});
  ASSERT_EQ(Load(folder / "0", loaded), absl::OkStatus());
  EXPECT_TRUE(model.SameBits(loaded));
  EXPECT_EQ(CheckpointReader::Open(folder / "0")->ReadRunState().value(), SomeRun());
  EXPECT_TRUE(CheckpointReader::Open(folder / "0")->Verify().empty());
}

TEST(Checkpoint, HoldsAnEmptyModel) {
  base::TestFolder folder;
  ASSERT_TRUE(WriteCheckpoint(folder / "0", ModelView{}, RunState{}).ok());
  const auto reader = CheckpointReader::Open(folder / "0");
  ASSERT_EQ(reader.status(), absl::OkStatus());
  EXPECT_TRUE(reader->Verify().empty());
  EXPECT_EQ(reader->LoadInto(ModelTables{}, LoadKind::kTraining), absl::OkStatus());
  EXPECT_EQ(reader->ReadRunState().value(), RunState{});
}

TEST(Checkpoint, OfEqualModelsIsEqualBytes) {
  base::TestFolder folder;
  TestModel a, b;
  a.FillRandom(3000, 7);
  // The same rows, arriving in another order.
  const RowBits bits = BitsOf(*a.sparse[0]);
  for (auto it = bits.rbegin(); it != bits.rend(); ++it) SetRow(*b.sparse[0], it->first, it->second);
  FillRandom(*b.sparse[1], 1500, 8);
  b.FillDense(9);
  ASSERT_TRUE(Save(folder / "a", a).ok());
  ASSERT_TRUE(Save(folder / "b", b).ok());
  EXPECT_EQ(base::FilesIn(folder / "a"), base::FilesIn(folder / "b"));
}

TEST(Checkpoint, LargeSavesTakeSeveralFilesAndThreads) {
  base::TestFolder folder;
  TestModel model(100);
  model.FillRandom(60000, 3);  // 60000 × (8 + 4 × 302) bytes
  ASSERT_TRUE(Save(folder / "0", model).ok());
  const auto reader = CheckpointReader::Open(folder / "0");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->manifest().files.size(), 2u);
  TestModel loaded(100);
  ASSERT_TRUE(Load(folder / "0", loaded).ok());
  EXPECT_TRUE(model.SameBits(loaded));
}

// A shard that does not fit the sorter's memory is visited range by range; the bytes are the same.
TEST(RowSorter, WritesTheSameBytesWithLittleMemory) {
  class OneShard final : public RowSource {
   public:
    explicit OneShard(const table::SparseTable& table) : table_(table) {}
    const table::SparseTableConfig& config() const override { return table_.config(); }
    int row_width() const override { return table_.row_width(); }
    int pull_width() const override { return table_.pull_width(); }
    uint64_t ShardRows(uint32_t) const override { return table_.rows(); }
    absl::Status ForEachRow(uint32_t, const table::SparseTable::RowFn& fn) const override {
      for (uint32_t s = 0; s < base::kVirtualShards; ++s) table_.ForEachRow(s, fn);
      return absl::OkStatus();
    }

   private:
    const table::SparseTable& table_;
  };
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(5000, 5);
  SetRow(*model.sparse[0], 0, {});
  SetRow(*model.sparse[0], ~base::Key{0}, {});
  const OneShard source(*model.sparse[0]);
  std::vector<std::string> bytes;
  for (const uint64_t memory : {uint64_t{100}, uint64_t{10000}, uint64_t{1} << 30}) {
    auto out = DataFileWriter::Create(folder.path(), 0);
    ASSERT_TRUE(out.ok());
    const auto extent = RowSorter(memory).Write(source, 0, **out);
    ASSERT_TRUE(extent.ok());
    EXPECT_EQ(extent->items, 5002u);
    EXPECT_EQ(extent->bytes, RowExtentBytes(5002, source.row_width()));
    ASSERT_TRUE((*out)->Finish().ok());
    bytes.push_back(base::ReadFile(folder / "data-000").value());
  }
  EXPECT_EQ(bytes[0], bytes[2]);
  EXPECT_EQ(bytes[1], bytes[2]);
}

TEST(Checkpoint, RefusesAnotherSchemaFieldByField) {
  base::TestFolder folder;
  TestModel saved(5, {7, 3}), wanted(6, {7, 4}, "sgd");
  saved.FillRandom(100, 1);
  wanted.FillRandom(100, 2);
  const auto before = BitsOf(*wanted.sparse[0]);
  ASSERT_TRUE(Save(folder / "0", saved).ok());
  const absl::Status status = Load(folder / "0", wanted);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  for (const char* part : {"table embedding: dim: saved 5, wanted 6", "table embedding: rule: saved adam, wanted sgd",
                           "table embedding: floats a row: saved 17, wanted 6", "dense: rule: saved adam, wanted sgd",
                           "dense: parameter 0: saved fc.weight [7,3], wanted fc.weight [7,4]"})
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << part << " not in: " << status.message();
  EXPECT_EQ(BitsOf(*wanted.sparse[0]), before);
}

TEST(Checkpoint, RefusesTablesThatAreMissingOrTooMany) {
  base::TestFolder folder;
  TestModel model;
  ASSERT_TRUE(WriteCheckpoint(folder / "one", ModelView{{model.sparse[0].get()}, nullptr}, RunState{}).ok());
  const absl::Status missing = Load(folder / "one", model);
  EXPECT_TRUE(absl::StrContains(missing.message(), "table wide: wanted, but not in the save")) << missing;
  EXPECT_TRUE(absl::StrContains(missing.message(), "dense: wanted, but not in the save")) << missing;
  ASSERT_TRUE(Save(folder / "all", model).ok());
  const auto reader = CheckpointReader::Open(folder / "all");
  const ModelTables one{{model.sparse[0].get()}, nullptr};
  const absl::Status extra = reader->LoadInto(one, LoadKind::kTraining);
  EXPECT_TRUE(absl::StrContains(extra.message(), "table wide: saved, but not wanted")) << extra;
  EXPECT_EQ(reader->LoadInto(one, LoadKind::kInference), absl::OkStatus());
}

TEST(Checkpoint, AnotherLearningRateIsNoOtherSchema) {
  base::TestFolder folder;
  TestModel saved;
  saved.FillRandom(100, 1);
  ASSERT_TRUE(Save(folder / "0", saved).ok());
  TestModel wanted;
  table::SparseTableConfig config = wanted.sparse[0]->config();
  config.rule.learning_rate = 0.5;
  config.seed = 1;
  wanted.sparse[0] = table::SparseTable::Create(config).value();
  ASSERT_EQ(Load(folder / "0", wanted), absl::OkStatus());
  EXPECT_TRUE(saved.SameBits(wanted));
}

TEST(Checkpoint, InferenceTakesWeightsIntoTablesOfAnotherRule) {
  base::TestFolder folder;
  TestModel saved(5, {7, 3}, "adam"), wanted(5, {7, 3}, "sgd");
  saved.FillRandom(1000, 1);
  ASSERT_TRUE(Save(folder / "0", saved).ok());
  ASSERT_EQ(Load(folder / "0", wanted, LoadKind::kInference), absl::OkStatus());
  auto expected = BitsOf(*saved.sparse[0]);
  for (auto& [key, row] : expected) row.resize(5);
  EXPECT_EQ(BitsOf(*wanted.sparse[0]), expected);
  EXPECT_EQ(0, std::memcmp(wanted.dense->Values().data(), saved.dense->Values().data(), saved.dense->size() * 4));
}

TEST(Checkpoint, ReadsOneRowAndDenseRanges) {
  base::TestFolder folder;
  TestModel model(5, {3000, 30});
  model.FillRandom(5000, 4);
  ASSERT_TRUE(Save(folder / "0", model).ok());
  const auto reader = CheckpointReader::Open(folder / "0");
  for (const auto& [key, bits] : BitsOf(*model.sparse[0])) {
    const auto row = reader->FindRow(0, key);
    ASSERT_TRUE(row.ok());
    ASSERT_EQ(0, std::memcmp(row->data(), bits.data(), bits.size() * 4));
  }
  EXPECT_TRUE(absl::IsNotFound(reader->FindRow(0, 12345).status()));
  for (const auto& [begin, size] : std::vector<std::pair<uint64_t, size_t>>{
           {0, 1}, {4095, 2}, {4096, 4096}, {5000, 20000}, {89990, 14}, {90004, 0}}) {
    std::vector<float> out(size);
    ASSERT_EQ(reader->ReadDense(2, begin, out), absl::OkStatus()) << begin;
    EXPECT_TRUE(size == 0 || std::memcmp(out.data(), model.dense->State(1).data() + begin, size * 4) == 0);
  }
  std::vector<float> out(2);
  EXPECT_FALSE(reader->ReadDense(0, 90003, out).ok());
  EXPECT_FALSE(reader->ReadDense(3, 0, out).ok());
}

TEST(Checkpoint, RowsComeMergedByKey) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(5000, 6);
  ASSERT_TRUE(Save(folder / "0", model).ok());
  const auto reader = CheckpointReader::Open(folder / "0");
  MergedRows rows = reader->Rows(0);
  for (const auto& [key, bits] : BitsOf(*model.sparse[0])) {
    ASSERT_TRUE(rows.Next().value());
    ASSERT_EQ(rows.key(), key);
    ASSERT_EQ(0, std::memcmp(rows.row().data(), bits.data(), bits.size() * 4));
  }
  EXPECT_FALSE(rows.Next().value());
  EXPECT_FALSE(rows.Next().value());
}

TEST(WriteCheckpoint, ReplacesASaveButNothingElse) {
  base::TestFolder folder;
  TestModel model;
  ASSERT_TRUE(Save(folder / "0", model).ok());
  model.FillRandom(100, 1);
  ASSERT_TRUE(Save(folder / "0", model).ok());
  EXPECT_EQ(CheckpointReader::Open(folder / "0")->manifest().TotalRows(), 150u);
  EXPECT_FALSE(base::Exists(folder / "0.saving"));

  ASSERT_TRUE(base::MakeFolders(folder / "mine").ok());
  ASSERT_TRUE(base::WriteFileAtomically(folder / "mine/notes.txt", "dear").ok());
  const absl::Status status = Save(folder / "mine", model);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_EQ(base::ReadFile(folder / "mine/notes.txt").value(), "dear");
}

TEST(WriteCheckpoint, WorksWhereTheDiskCannotExchangeFolders) {
  base::TestFolder folder;
  TestModel model;
  ASSERT_TRUE(Save(folder / "0", model).ok());
  model.FillRandom(100, 1);
  ASSERT_TRUE(base::ArmFailpoints("save.exchange=error").ok());
  const absl::Status status = Save(folder / "0", model);
  ASSERT_TRUE(base::ArmFailpoints("").ok());
  ASSERT_EQ(status, absl::OkStatus());
  EXPECT_EQ(CheckpointReader::Open(folder / "0")->manifest().TotalRows(), 150u);
  EXPECT_EQ(1, std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(WriteCheckpoint, FailureRemovesWhatItBegan) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(100, 1);
  ASSERT_TRUE(Save(folder / "0", model).ok());
  const auto before = base::FilesIn(folder.path());
  model.FillRandom(100, 2);
  for (const char* failpoint : {"file.write=enospc", "file.fsync=error", "file.rename=error", "save.data=error",
                                "save.manifest=error", "save.switch=error"}) {
    ASSERT_TRUE(base::ArmFailpoints(failpoint).ok());
    const absl::Status status = Save(folder / "0", model);
    ASSERT_TRUE(base::ArmFailpoints("").ok());
    EXPECT_FALSE(status.ok()) << failpoint;
    EXPECT_EQ(base::FilesIn(folder.path()), before) << failpoint;
  }
}

TEST(WriteCheckpoint, SaysHowMuchRoomIsMissing) {
  const absl::Status status = CheckFreeSpace("/x/3", 1000, 999);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "not enough room to save /x/3: 1000 bytes are needed and 999 are free");
  EXPECT_TRUE(CheckFreeSpace("/x/3", 999, 999).ok());
}

TEST(WriteCheckpoint, RefusesWhatAManifestCannotHold) {
  base::TestFolder folder;
  table::SparseTableConfig config;
  config.name = "t\xff";
  config.dim = 1;
  const auto table = table::SparseTable::Create(config).value();
  const absl::Status status = WriteCheckpoint(folder / "0", ModelView{{table.get()}, nullptr}, RunState{});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace regatta::checkpoint
