// Saves of a snapshot: written while training goes on, in parts by several servers, as changes since a base.
#include "checkpoint/model_snapshot.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <shared_mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/grouped_keys.h"
#include "base/testing/test_folder.h"
#include "checkpoint/dump.h"
#include "checkpoint/json_field.h"
#include "checkpoint/model_difference.h"
#include "checkpoint/npz_model.h"
#include "checkpoint/row_sorter.h"
#include "checkpoint/save_list.h"
#include "checkpoint/test_model.h"
#include "checkpoint/test_servers.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

RunState AtStep(uint64_t step) {
  RunState run;
  run.step = step;
  run.blobs = {{"auc", std::string(step % 7, 'a')}};
  return run;
}

// Saves a model whole or, with the folder of a base, its changes.
absl::Status SaveSnapshot(const std::string& folder, const TestModel& model, const RunState& run,
                          const std::string& since = "") {
  SnapshotOptions options;
  if (!since.empty()) {
    ASSIGN_OR_RETURN(options.base, BaseAt(since));
  }
  ASSIGN_OR_RETURN(const auto snapshot, ModelSnapshot::Begin(model.tables(), options));
  return SaveSnapshot(folder, *snapshot, run);
}

absl::Status LoadSnapshot(const std::string& folder, const TestModel& model) {
  ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  return reader.LoadInto(model.tables(), LoadKind::kTraining);
}

void Track(const TestModel& model) {
  for (const auto& table : model.sparse) table->TrackChanges(table::Tracking::kOn);
}

void PushModel(const TestModel& model, std::vector<base::Key> keys, float gradient) {
  const base::GroupedKeys grouped(std::move(keys));
  for (const auto& table : model.sparse) {
    const int width = table->push_width();
    const std::vector<float> grads(grouped.size() * static_cast<size_t>(width), gradient);
    base::TableGrads push;
    push.keys = grouped.view();
    push.grads = {grads.data(), width, width};
    ASSERT_TRUE(table->Push(push, {}).ok());
  }
  const std::vector<float> dense(static_cast<size_t>(model.dense->size()), gradient);
  const base::DenseGrad piece{0, dense};
  ASSERT_TRUE(model.dense->Push({&piece, 1}, {}).ok());
}

std::string Dump(const CheckpointReader& reader) {
  std::string text;
  EXPECT_TRUE(DumpSave(reader, "", [&](std::string_view more) {
                text.append(more);
                return absl::OkStatus();
              }).ok());
  return text;
}

// Writes a manifest again with something replaced and a checksum that fits.
void Edit(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = base::ReadFile(path).value();
  ASSERT_TRUE(absl::StrContains(text, from)) << text.substr(0, 400);
  text = absl::StrReplaceAll(text, {{from, to}});
  text.resize(text.rfind("\"crc32c\": \""));
  const uint32_t crc = base::Crc32c(text.data(), text.size());
  absl::StrAppend(&text, "\"crc32c\": \"", HexOf(crc, 8), "\"}\n");
  ASSERT_TRUE(base::WriteFileAtomically(path, text).ok());
}

TEST(ModelSnapshot, SavedWhileFourThreadsPushIsTheModelAtItsBegin) {
  base::TestFolder folder;
  TestModel model(5, {70, 3});
  Track(model);
  std::shared_mutex pause;
  std::atomic<bool> stop{false}, pausing{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      base::Rng rng(t);
      for (uint64_t round = 0; !stop; ++round) {
        std::vector<base::Key> keys;
        for (int i = 0; i < 100; ++i) keys.push_back(rng.Below(2000 + 10 * round));
        while (pausing) std::this_thread::yield();  // the lock alone prefers who shares it
        std::shared_lock lock(pause);
        PushModel(model, std::move(keys), static_cast<float>(rng.Uniform()));
      }
    });
  }
  std::string base;
  for (uint64_t i = 0; i < 4; ++i) {
    const std::string at = folder / absl::StrCat("cut", i);
    SnapshotOptions options;
    options.bound = 1 << 20;
    if (!base.empty()) options.base = BaseAt(base).value();
    std::unique_ptr<ModelSnapshot> snapshot;
    {
      pausing = true;
      const std::unique_lock paused(pause);
      ASSERT_TRUE(WriteCheckpoint(at + "-copy", model.view(), AtStep(i)).ok());
      snapshot = ModelSnapshot::Begin(model.tables(), options).value();
      pausing = false;
    }
    ASSERT_EQ(SaveSnapshot(at, *snapshot, AtStep(i)), absl::OkStatus());
    base = at;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(base::FilesIn(folder / "cut0") == base::FilesIn(folder / "cut0-copy"))
      << "a whole save has the same bytes";
  for (uint64_t i = 0; i < 4; ++i) {
    const std::string at = folder / absl::StrCat("cut", i);
    TestModel a(5, {70, 3}), b(5, {70, 3});
    ASSERT_EQ(LoadSnapshot(at, a), absl::OkStatus());
    ASSERT_EQ(LoadSnapshot(at + "-copy", b), absl::OkStatus());
    EXPECT_TRUE(a.SameBits(b)) << i;
    EXPECT_TRUE(Dump(CheckpointReader::Open(at).value()) == Dump(CheckpointReader::Open(at + "-copy").value()));
  }
}

// Other sources are visited once a range of keys then; a shard of a snapshot can be visited once.
TEST(ModelSnapshot, AShardLargerThanASorterHoldsIsSavedToo) {
  base::TestFolder folder;
  TestModel model(64);
  const std::vector<float> row(static_cast<size_t>(model.sparse[0]->row_width()), 1.5f);
  uint64_t rows = 0;
  for (base::Key key = 0; rows * row.size() * sizeof(float) < kSortBytes + 1000; ++key) {
    if (base::ShardOf(key) != 77) continue;
    ASSERT_TRUE(model.sparse[0]->Load(77, {&key, 1}, row).ok());
    ++rows;
  }
  ASSERT_EQ(SaveSnapshot(folder / "0", model, AtStep(0)), absl::OkStatus());
  ASSERT_TRUE(WriteCheckpoint(folder / "copy", model.view(), AtStep(0)).ok());
  EXPECT_TRUE(base::FilesIn(folder / "0") == base::FilesIn(folder / "copy"));
}

TEST(ModelSnapshot, AFailedSaveAbandonsIt) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(100, 1);
  ASSERT_TRUE(base::MakeFolders(folder / "mine").ok());
  ASSERT_TRUE(base::WriteFileAtomically(folder / "mine/file", "x").ok());
  {
    auto snapshot = ModelSnapshot::Begin(model.tables(), {});
    ASSERT_TRUE(snapshot.ok());
    EXPECT_EQ(ModelSnapshot::Begin(model.tables(), {}).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_FALSE(SaveSnapshot(folder / "mine", **snapshot, AtStep(1)).ok());
  }
  EXPECT_EQ(SaveSnapshot(folder / "1", model, AtStep(1)), absl::OkStatus());
}

TEST(Incremental, HoldsOnlyWhatChangedAndGivesBackEveryBit) {
  base::TestFolder folder;
  TestModel model;
  Track(model);
  model.FillRandom(3000, 1);
  ASSERT_EQ(SaveSnapshot(folder / "0", model, AtStep(0)), absl::OkStatus());
  const std::vector<base::Key> created = {1, 2, 3};
  PushModel(model, created, 0.5f);
  ASSERT_EQ(SaveSnapshot(folder / "1", model, AtStep(1), folder / "0"), absl::OkStatus());
  PushModel(model, {2, 3, 4, 5}, 0.25f);
  model.FillDense(9);
  ASSERT_EQ(SaveSnapshot(folder / "2", model, AtStep(2), folder / "1"), absl::OkStatus());
  ASSERT_EQ(SaveSnapshot(folder / "3", model, AtStep(3), folder / "2"), absl::OkStatus());  // no row has changed
  ASSERT_TRUE(WriteCheckpoint(folder / "whole", model.view(), AtStep(3)).ok());

  const auto reader = CheckpointReader::Open(folder / "3");
  ASSERT_EQ(reader.status(), absl::OkStatus());
  ASSERT_EQ(reader->layers().size(), 4u);
  EXPECT_EQ(reader->layers()[1].manifest.TotalRows(), 6u);
  EXPECT_EQ(reader->layers()[2].manifest.TotalRows(), 8u);
  EXPECT_EQ(reader->layers()[3].manifest.TotalRows(), 0u);
  EXPECT_TRUE(reader->Verify().empty());
  EXPECT_EQ(reader->ReadRunState().value(), AtStep(3));
  EXPECT_EQ(reader->CountRows(0).value(), 3005u);
  TestModel loaded;
  ASSERT_EQ(reader->LoadInto(loaded.tables(), LoadKind::kTraining), absl::OkStatus());
  EXPECT_TRUE(loaded.SameBits(model));

  // Whoever reads row by row sees every key once, with its newest row.
  const CheckpointReader whole = CheckpointReader::Open(folder / "whole").value();
  EXPECT_TRUE(Dump(*reader) == Dump(whole));
  const auto differences = CompareSaves(*reader, whole);
  ASSERT_TRUE(differences.ok());
  for (const TableDifference& d : *differences) EXPECT_TRUE(d.same()) << d.name;
  for (const base::Key key : {1, 2, 5}) EXPECT_EQ(reader->FindRow(0, key).value(), whole.FindRow(0, key).value());
  EXPECT_TRUE(absl::IsNotFound(reader->FindRow(0, 99).status()));
  ASSERT_EQ(ExportNpz(*reader, folder / "a.npz"), absl::OkStatus());
  ASSERT_EQ(ExportNpz(whole, folder / "b.npz"), absl::OkStatus());
  EXPECT_TRUE(base::ReadFile(folder / "a.npz").value() == base::ReadFile(folder / "b.npz").value());
  TestModel blocks;
  for (size_t t = 0; t < 2; ++t)
    ASSERT_TRUE(
        reader
            ->ForEachBlock(t, [&](uint32_t shard, std::span<const base::Key> keys,
                                  std::span<const float> rows) { return blocks.sparse[t]->Load(shard, keys, rows); })
            .ok());
  EXPECT_EQ(BitsOf(*blocks.sparse[0]), BitsOf(*model.sparse[0]));

  const SaveInfo info = ListSaves(folder / "2").at(0);
  EXPECT_EQ(info.base, "1");
  EXPECT_EQ(info.rows, 8u);
}

TEST(Incremental, IsRefusedWhereChangesCannotBeTold) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(100, 1);
  ASSERT_EQ(SaveSnapshot(folder / "0", model, AtStep(0)), absl::OkStatus());
  EXPECT_EQ(SaveSnapshot(folder / "1", model, AtStep(1), folder / "0").code(), absl::StatusCode::kFailedPrecondition);
  Track(model);
  EXPECT_EQ(SaveSnapshot(folder / "1", model, AtStep(1), folder / "0").code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(SaveSnapshot(folder / "1", model, AtStep(1)), absl::OkStatus());
  ASSERT_EQ(SaveSnapshot(folder / "2", model, AtStep(2), folder / "1"), absl::OkStatus());
  // Loading clears: the rows that are gone are in no difference.
  ASSERT_EQ(LoadSnapshot(folder / "0", model), absl::OkStatus());
  EXPECT_EQ(SaveSnapshot(folder / "3", model, AtStep(3), folder / "2").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(SaveSnapshot(folder / "4", model, AtStep(4), folder / "nowhere").ok());
}

TEST(Incremental, OnAnotherSaveThanItsBaseIsNotWritten) {
  base::TestFolder folder;
  TestModel model;
  Track(model);
  ASSERT_EQ(SaveSnapshot(folder / "0", model, AtStep(0)), absl::OkStatus());
  SnapshotOptions options;
  options.base = BaseAt(folder / "0").value();
  const auto save = [&](const std::string& name) {
    const auto snapshot = ModelSnapshot::Begin(model.tables(), options).value();
    return SaveSnapshot(folder / name, *snapshot, AtStep(1));
  };
  EXPECT_EQ(save("0").code(), absl::StatusCode::kFailedPrecondition) << "its own base";
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), AtStep(5)).ok());
  const absl::Status status = save("1");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), folder / "0")) << status;
  EXPECT_FALSE(base::Exists(folder / "1"));
}

class BrokenChain : public testing::Test {
 protected:
  void SetUp() override {
    Track(model_);
    model_.FillRandom(50, 1);
    ASSERT_EQ(SaveSnapshot(folder_ / "0", model_, AtStep(0)), absl::OkStatus());
    for (int i = 1; i < 4; ++i) {
      PushModel(model_, {1, 2, static_cast<base::Key>(i)}, 1.0f);
      ASSERT_EQ(SaveSnapshot(folder_ / absl::StrCat(i), model_, AtStep(i), folder_ / absl::StrCat(i - 1)),
                absl::OkStatus());
    }
    ASSERT_TRUE(CheckpointReader::Open(folder_ / "3").ok());
  }
  // Opening or, where that is fine, verifying and loading must find it, and name the folder.
  void ExpectFound(const std::string& name, const std::string& word) {
    const auto reader = CheckpointReader::Open(folder_ / "3");
    if (reader.ok()) {
      const std::vector<absl::Status> damage = reader->Verify();
      ASSERT_FALSE(damage.empty()) << word;
      EXPECT_TRUE(absl::StrContains(damage[0].message(), folder_ / name)) << damage[0];
      return;
    }
    EXPECT_TRUE(absl::IsDataLoss(reader.status())) << reader.status();
    EXPECT_TRUE(absl::StrContains(reader.status().message(), folder_ / name)) << reader.status();
    EXPECT_TRUE(absl::StrContains(reader.status().message(), word)) << reader.status();
    const SaveInfo info = ListSaves(folder_ / "3").at(0);
    EXPECT_FALSE(info.status.ok());
  }
  base::TestFolder folder_;
  TestModel model_;
};

TEST_F(BrokenChain, AMissingBase) {
  std::filesystem::remove_all(folder_ / "1");
  ExpectFound("1", "cannot be read");
}

TEST_F(BrokenChain, AnotherBaseOfTheSameModel) {
  TestModel other;
  other.FillRandom(50, 2);
  ASSERT_TRUE(WriteCheckpoint(folder_ / "0", other.view(), AtStep(0)).ok());
  ExpectFound("0", "not the save that it was made for");
}

TEST_F(BrokenChain, ACircle) {
  Edit(folder_ / "1/MANIFEST", "\"id\":\"0\"", "\"id\":\"3\"");
  const std::string hash = HexOf(BaseAt(folder_ / "1")->manifest, 16);
  const auto old = ParseManifest(base::ReadFile(folder_ / "2/MANIFEST").value());
  Edit(folder_ / "2/MANIFEST", HexOf(old->base->manifest, 16), hash);
  const auto old3 = ParseManifest(base::ReadFile(folder_ / "3/MANIFEST").value());
  Edit(folder_ / "3/MANIFEST", HexOf(old3->base->manifest, 16), HexOf(BaseAt(folder_ / "2")->manifest, 16));
  ExpectFound("1", "circle");
}

TEST_F(BrokenChain, ItsOwnBase) {
  Edit(folder_ / "3/MANIFEST", "\"id\":\"2\"", "\"id\":\"3\"");
  ExpectFound("3", "circle");
}

TEST_F(BrokenChain, ABaseOutsideOfTheFolder) {
  Edit(folder_ / "3/MANIFEST", "\"id\":\"2\"", "\"id\":\"../2\"");
  ExpectFound("3/MANIFEST", "base.id");
}

TEST_F(BrokenChain, ABaseWithOtherTables) {
  TestModel other(7);
  ASSERT_TRUE(WriteCheckpoint(folder_ / "2", other.view(), AtStep(2)).ok());
  const auto old = ParseManifest(base::ReadFile(folder_ / "3/MANIFEST").value());
  Edit(folder_ / "3/MANIFEST", HexOf(old->base->manifest, 16), HexOf(BaseAt(folder_ / "2")->manifest, 16));
  ExpectFound("2", "table embedding");
}

TEST_F(BrokenChain, AFlippedBitAnywhere) {
  for (const std::string name : {"0", "1", "2", "3"}) {
    for (const std::string file : {"MANIFEST", "data-000"}) {
      const std::string path = folder_ / (name + "/" + file);
      const std::string bytes = base::ReadFile(path).value();
      for (size_t at = 0; at < bytes.size(); at += bytes.size() / 13 + 1) {
        std::string damaged = bytes;
        damaged[at] ^= static_cast<char>(1 << (at % 8));
        ASSERT_TRUE(base::WriteFileAtomically(path, damaged).ok());
        ExpectFound(name, "");
      }
      ASSERT_TRUE(base::WriteFileAtomically(path, bytes).ok());
    }
  }
  EXPECT_TRUE(CheckpointReader::Open(folder_ / "3")->Verify().empty());
}

// A version 1 reader would take such a save for a whole one.
TEST_F(BrokenChain, AnIncrementalThatClaimsVersion1) {
  Edit(folder_ / "3/MANIFEST", "\"version\": 2", "\"version\": 1");
  ExpectFound("3", "manifest.version");
}

TEST(Parts, LoadOnAnyOtherNumberOfServersBitForBit) {
  base::TestFolder folder;
  TestModel model(5, {1, 1});  // 5 dense elements in all: some servers have a block of none or one
  model.FillRandom(4000, 1);
  ASSERT_TRUE(WriteCheckpoint(folder / "whole", model.view(), AtStep(7)).ok());
  const std::string want = Dump(CheckpointReader::Open(folder / "whole").value());
  std::string from = folder / "whole";
  int number = 0;
  for (const uint32_t count : {1, 2, 3, 5, 7, 2, 5, 3, 1}) {
    TestServers servers(model, count);
    servers.Load(CheckpointReader::Open(from).value());
    from = folder / absl::StrCat("parts", number);
    servers.Save(from, absl::StrCat("c", number++));
    const auto reader = CheckpointReader::Open(from);
    ASSERT_EQ(reader.status(), absl::OkStatus());
    EXPECT_TRUE(Dump(*reader) == want) << count;
    EXPECT_TRUE(reader->Verify().empty());
    EXPECT_EQ(reader->manifest().TotalRows(), model.sparse[0]->rows() + model.sparse[1]->rows());
    EXPECT_EQ(reader->ReadRunState()->blobs.size(), count);
    TestModel loaded(5, {1, 1});
    ASSERT_EQ(reader->LoadInto(loaded.tables(), LoadKind::kTraining), absl::OkStatus());
    EXPECT_TRUE(loaded.SameBits(model));
    EXPECT_EQ(ListSaves(from).at(0).parts, count);
  }
}

TEST(Parts, OfIncrementalsMakeAWholeToo) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(500, 1);
  ASSERT_TRUE(WriteCheckpoint(folder / "whole", model.view(), AtStep(7)).ok());
  TestServers servers(model, 3);
  servers.Load(CheckpointReader::Open(folder / "whole").value());
  servers.Save(folder / "a", "a");
  for (base::Key key = 1; key < 40; ++key) {
    SetRow(*model.sparse[0], key, {static_cast<uint32_t>(key) * 3});
    servers.SetRow(key, static_cast<uint32_t>(key) * 3);
  }
  servers.Save(folder / "b", "b", folder / "a");
  const auto reader = CheckpointReader::Open(folder / "b");
  ASSERT_EQ(reader.status(), absl::OkStatus());
  EXPECT_EQ(reader->layers().size(), 6u);
  EXPECT_TRUE(reader->Verify().empty());
  TestModel loaded;
  ASSERT_EQ(reader->LoadInto(loaded.tables(), LoadKind::kTraining), absl::OkStatus());
  EXPECT_TRUE(loaded.SameBits(model));
  EXPECT_EQ(ListSaves(folder / "b").at(0).rows, 39u);
  // The base of a part is that part of the base.
  std::filesystem::remove_all(folder / "a/part-001");
  const absl::Status status = CheckpointReader::Open(folder / "b").status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), folder / "a/part-001")) << status;
}

TEST(Parts, ThatAreNotAllOfOneSnapshotAreRefused) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(300, 1);
  TestServers servers(model, 3), two(model, 2);
  servers.Save(folder / "a", "a");
  servers.Save(folder / "b", "b");
  two.Save(folder / "two", "a");
  const auto part = [&](const std::string& name) { return folder / name; };
  const auto refused = [](const absl::Status& status, const std::string& word) {
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(absl::StrContains(status.message(), word)) << status;
  };
  ASSERT_TRUE(CheckpointReader::OpenParts({part("a/part-002"), part("a/part-000"), part("a/part-001")}).ok());
  refused(CheckpointReader::OpenParts({part("a/part-000"), part("b/part-001"), part("a/part-002")}).status(),
          "are not of one snapshot");
  refused(CheckpointReader::OpenParts({part("a/part-000"), part("two/part-001")}).status(), "are not of one snapshot");
  refused(CheckpointReader::OpenParts({part("a/part-000"), part("a/part-002")}).status(), "part 1 of 3");
  refused(CheckpointReader::OpenParts({part("a/part-000"), part("a/part-001")}).status(), "part 2 of 3");
  refused(CheckpointReader::OpenParts({part("a/part-001"), part("a/part-002")}).status(), "part 0 of 3");
  refused(CheckpointReader::OpenParts({part("a/part-000"), part("a/part-001"), part("a/part-001"), part("a/part-002")})
              .status(),
          "both hold blob");
  refused(CheckpointReader::OpenParts({}).status(), "no parts");
  ASSERT_TRUE(WriteCheckpoint(folder / "whole", model.view(), AtStep(7)).ok());
  refused(CheckpointReader::OpenParts({part("whole")}).status(), "is a whole save");
  // One alone does not fill a model, but can be looked at.
  refused(CheckpointReader::Open(part("a/part-001")).status(), "part 1 of 3");
  const auto alone = CheckpointReader::OpenPart(part("a/part-001"));
  ASSERT_EQ(alone.status(), absl::OkStatus());
  EXPECT_TRUE(alone->Verify().empty());
  EXPECT_FALSE(alone->LoadInto(model.tables(), LoadKind::kTraining).ok());
  // Ranges that leave a hole, behind good checksums.
  Edit(part("a/part-001/MANIFEST"), "\"shards\":[341,682]", "\"shards\":[341,683]");
  refused(CheckpointReader::Open(folder / "a").status(), "part 2 of 3 of snapshot a) begins at shard 682 where 683");
  std::filesystem::remove_all(folder / "b/part-000");
  EXPECT_FALSE(CheckpointReader::Open(folder / "b").ok());
}

TEST(Parts, OfDifferentMomentsOfTheRunAreRefused) {
  base::TestFolder folder;
  TestModel model;
  TestServers servers(model, 2);
  RunState early, late;
  late.step = 1;
  ASSERT_TRUE(servers.SavePartOf(0, folder / "a", "a", "", early).ok());
  ASSERT_TRUE(servers.SavePartOf(1, folder / "a", "a", "", late).ok());
  const absl::Status status = CheckpointReader::Open(folder / "a").status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "different moments")) << status;
}

}  // namespace
}  // namespace regatta::checkpoint
