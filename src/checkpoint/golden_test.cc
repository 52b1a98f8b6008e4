// Saves of every format version as they were written when the version was new: they load for ever, and as long as a
// version is what is written, the same model gives the same data. REGATTA_WRITE_GOLDEN=1 writes them anew (for a new
// version, into a new folder; the old ones stay).
#include <cstdlib>
#include <string>

#include "base/testing/test_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/test_model.h"
#include "checkpoint/test_servers.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

const char kFolder[] = REGATTA_TEST_DATA "/checkpoint_v1";
const std::string kParts = REGATTA_TEST_DATA "/checkpoint_v2/a";    // of two servers
const std::string kChanges = REGATTA_TEST_DATA "/checkpoint_v2/b";  // of the same, since kParts
constexpr base::Key kChanged = 737395, kNew = 99;

TestModel GoldenModel() {
  TestModel model(2, {2, 3}, "adam");
  for (const base::Key key : {base::Key{0}, base::Key{1}, base::Key{737395}, ~base::Key{0}}) {
    const uint32_t k = static_cast<uint32_t>(key);
    SetRow(*model.sparse[0], key, {0x3F800000, 0x80000000, k, 0x7FC00001, 1, 0xFF800000, 0x3F666666, 0x3F7FBE77});
    SetRow(*model.sparse[1], key * 3, {k + 1});
  }
  std::vector<std::vector<float>> arrays(3);
  for (size_t a = 0; a < 3; ++a)
    for (int i = 0; i < 10; ++i) arrays[a].push_back(static_cast<float>(i) + 0.25f * static_cast<float>(a));
  EXPECT_TRUE(model.dense->Load(arrays[0], std::span(arrays).subspan(1), 812).ok());
  return model;
}

RunState GoldenRun() {
  RunState run;
  run.epoch = 2;
  run.epoch_state = EpochState::kFinished;
  run.position = {2, 812, 5};
  run.step = 2436;
  run.lane_count = 3;
  run.settings_hash = 0x0123456789ABCDEFULL;
  run.blobs = {{"auc", std::string("\x00\x01\xFF metrics", 11)}, {"empty", ""}};
  return run;
}

TEST(Golden, Version1LoadsForEver) {
  const TestModel golden = GoldenModel();
  if (std::getenv("REGATTA_WRITE_GOLDEN")) {
    ASSERT_TRUE(WriteCheckpoint(kFolder, golden.view(), GoldenRun()).ok());
  }
  const auto reader = CheckpointReader::Open(kFolder);
  ASSERT_EQ(reader.status(), absl::OkStatus());
  EXPECT_TRUE(reader->Verify().empty());
  EXPECT_EQ(reader->ReadRunState().value(), GoldenRun());
  TestModel loaded(2, {2, 3}, "adam");
  ASSERT_EQ(reader->LoadInto(loaded.tables(), LoadKind::kTraining), absl::OkStatus());
  EXPECT_TRUE(loaded.SameBits(golden));
}

TEST(Golden, Version1IsStillWhatIsWritten) {
  base::TestFolder folder;
  ASSERT_TRUE(WriteCheckpoint(folder / "0", GoldenModel().view(), GoldenRun()).ok());
  auto written = base::FilesIn(folder / "0"), golden = base::FilesIn(kFolder);
  EXPECT_EQ(written["data-000"], golden["data-000"]);
  // Not by their bytes: a setting that a rule gained since stands in the one and has its default in the other.
  EXPECT_EQ(ParseManifest(written["MANIFEST"]).value(), ParseManifest(golden["MANIFEST"]).value());
}

// Two servers save their parts of the golden model, train on and save what has changed.
void WriteVersion2(const std::string& parts, const std::string& changes) {
  base::TestFolder folder;
  const TestModel model = GoldenModel();
  ASSERT_TRUE(WriteCheckpoint(folder / "whole", model.view(), GoldenRun()).ok());
  TestServers servers(model, 2);
  servers.Load(CheckpointReader::Open(folder / "whole").value());
  servers.Save(parts, "cut-a");
  for (const base::Key key : {kChanged, kNew}) servers.SetRow(key, 0x40490FDB);
  servers.Save(changes, "cut-b", parts);
}

TEST(Golden, Version2LoadsForEver) {
  if (std::getenv("REGATTA_WRITE_GOLDEN")) WriteVersion2(kParts, kChanges);
  TestModel golden = GoldenModel();
  for (const std::string& saved : {kParts, kChanges}) {
    SCOPED_TRACE(saved);
    const auto reader = CheckpointReader::Open(saved);
    ASSERT_EQ(reader.status(), absl::OkStatus());
    EXPECT_TRUE(reader->Verify().empty());
    EXPECT_EQ(reader->ReadRunState()->step, 7u);
    EXPECT_EQ(reader->ReadRunState()->blobs.size(), 2u) << "one of each server";
    TestModel loaded(2, {2, 3}, "adam");
    ASSERT_EQ(reader->LoadInto(loaded.tables(), LoadKind::kTraining), absl::OkStatus());
    EXPECT_TRUE(loaded.SameBits(golden));
    for (const base::Key key : {kChanged, kNew}) SetRow(*golden.sparse[0], key, {0x40490FDB});  // what kChanges adds
  }
}

TEST(Golden, Version2IsStillWhatIsWritten) {
  base::TestFolder folder;
  WriteVersion2(folder / "a", folder / "b");
  for (const char* part : {"a/part-000", "a/part-001", "b/part-000", "b/part-001"}) {
    SCOPED_TRACE(part);
    auto written = base::FilesIn(folder / part), golden = base::FilesIn(kParts + "/../" + part);
    EXPECT_EQ(written["data-000"], golden["data-000"]);
    Manifest ours = ParseManifest(written["MANIFEST"]).value(), theirs = ParseManifest(golden["MANIFEST"]).value();
    EXPECT_EQ(ours.base.has_value(), theirs.base.has_value());
    ours.base = theirs.base;  // names the base by its text, which may have gained a setting
    EXPECT_EQ(ours, theirs);
  }
}

}  // namespace
}  // namespace regatta::checkpoint
