#include "checkpoint/manifest.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/testing/test_folder.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

std::string SomeManifest() {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(20, 1);
  RunState run;
  run.blobs = {{"auc", "123"}, {"none", ""}};
  EXPECT_TRUE(WriteCheckpoint(folder / "0", model.view(), run).ok());
  return base::ReadFile(folder / "0/MANIFEST").value();
}

TEST(Manifest, FormatsToTheSameText) {
  const std::string text = SomeManifest();
  const auto manifest = ParseManifest(text);
  ASSERT_EQ(manifest.status(), absl::OkStatus());
  EXPECT_EQ(FormatManifest(*manifest), text);
}

TEST(Manifest, DetectsEveryFlippedByteAndEveryTruncation) {
  const std::string text = SomeManifest();
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= static_cast<char>(1 << (i % 8));
    ASSERT_TRUE(absl::IsDataLoss(ParseManifest(damaged).status())) << i;
    ASSERT_TRUE(absl::IsDataLoss(ParseManifest(text.substr(0, i)).status())) << i;
  }
  EXPECT_FALSE(ParseManifest(text + "\n").ok());
}

// Behind the checksum every field is looked at too: each of these would mislead a reader.
TEST(Manifest, NamesTheFieldThatCannotBe) {
  const std::string text = SomeManifest();
  const std::vector<std::array<const char*, 3>> cases = {
      {"\"version\": 1", "\"version\": 4", "format version 4"},
      {"\"version\": 1", "\"version\": 0", "format version 0"},
      {"\"version\": 1", "\"version\": 3", "manifest.version"},
      {"\"version\": 1", "\"version\": 2", "manifest.version"},
      {"\"format\": \"regatta checkpoint\"", "\"format\": \"other\"", "manifest.format"},
      {"\"name\":\"data-000\"", "\"name\":\"../../etc/passwd\"", "files[0].name"},
      {"\"row_width\": 17", "\"row_width\": 0", "sparse[0].row_width"},
      {"\"row_width\": 17", "\"row_width\": 18", "sparse[0].schema"},
      {"\"pull_width\": 5", "\"pull_width\": 99", "sparse[0].pull_width"},
      {"\"rows\": 20", "\"rows\": 21", "sparse[0].rows"},
      {"\"rows\": 20", "\"rows\": -1", "sparse[0].rows"},
      {"\"dim\":5", "\"dim\":6", "sparse[0].schema"},
      {"\"dim\":5", "\"dim\":\"5\"", "sparse[0].config.dim"},
      {"\"dim\":5", "\"dim\":5000000000", "sparse[0].config.dim"},
      {"\"name\":\"wide\"", "\"name\":\"embedding\"", "sparse"},
      {"\"shape\":[7,3]", "\"shape\":[7,-3]", "dense: shape of fc.weight"},
      {"\"shape\":[7,3]", "\"shape\":[4294967296,4294967296]", "dense: shape of fc.weight"},
      {"\"shape\":[7,3]", "\"shape\":[7,4]", "dense.size"},
      {"\"states\": 2", "\"states\": 1", "dense"},
      {"\"epoch_state\":\"running\"", "\"epoch_state\":\"walking\"", "run.epoch_state"},
      {"\"settings_hash\":\"0000000000000000\"", "\"settings_hash\":\"0\"", "run.settings_hash"},
      {"\"name\":\"auc\"", "\"name\":\"none\"", "blobs[1].name"},
      {"{\"format\"", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{\"format\"", "nested"},
  };
  for (const auto& [from, to, want] : cases) {
    ASSERT_TRUE(absl::StrContains(text, from)) << from;
    const std::string changed = absl::StrReplaceAll(text, {{from, to}});
    const absl::Status status = ParseManifest(changed, ManifestChecksum::kIgnore).status();
    EXPECT_FALSE(status.ok()) << to;
    EXPECT_TRUE(absl::StrContains(status.message(), want)) << to << ": " << status;
  }
}

TEST(Manifest, AWideWindowHasAVersionThatOlderReadersRefuse) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(20, 1);
  RunState run;
  run.position = {.pass = 1, .low = 100};
  for (uint64_t batch = 101; batch < 164; ++batch) run.position.Add(batch);
  ASSERT_TRUE(WriteCheckpoint(folder / "narrow", model.view(), run).ok());
  const std::string narrow = base::ReadFile(folder / "narrow/MANIFEST").value();
  EXPECT_TRUE(absl::StrContains(narrow, "\"version\": 1,"));
  EXPECT_TRUE(absl::StrContains(narrow, "\"position\":{\"pass\":1,\"low\":100,\"window\":18446744073709551614}"))
      << narrow;
  run.position.Add(164);
  run.position.Add(291);
  ASSERT_TRUE(WriteCheckpoint(folder / "wide", model.view(), run).ok());
  const std::string wide = base::ReadFile(folder / "wide/MANIFEST").value();
  EXPECT_TRUE(absl::StrContains(wide, "\"version\": 3,"));
  EXPECT_TRUE(absl::StrContains(wide, "\"beyond\":[1,9223372036854775808]")) << wide;
  EXPECT_EQ(ParseManifest(wide).value().run.position, run.position);
  const std::string many = absl::StrCat("[", absl::StrJoin(std::vector<int>(64, 1), ","), "]");
  for (const std::string& words : {std::string("[]"), std::string("[1,0]"), std::string("[-1]"), many}) {
    const std::string changed = absl::StrReplaceAll(wide, {{"[1,9223372036854775808]", words}});
    const absl::Status status = ParseManifest(changed, ManifestChecksum::kIgnore).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << words;
    EXPECT_TRUE(absl::StrContains(status.message(), "run.position.beyond")) << status;
  }
  EXPECT_FALSE(
      ParseManifest(absl::StrReplaceAll(wide, {{"\"version\": 3", "\"version\": 1"}}), ManifestChecksum::kIgnore).ok());
}

TEST(Manifest, OfAPartSaysWhatItHoldsAndOfAnIncrementalWhatItIsMadeFrom) {
  base::TestFolder folder;
  TestModel model;  // 25 dense elements
  model.FillRandom(2000, 1);
  std::vector<std::unique_ptr<RowSource>> rows;
  SaveContents contents = ContentsOf(model.view(), rows);
  ASSERT_TRUE(WriteCheckpoint(folder / "a", contents).ok());
  contents.part = SavePart{"2-400", 1, 3, {300, 700}, {7, 11}};
  contents.base = BaseAt(folder / "a").value();
  for (auto& array : contents.dense->arrays) array = array.subspan(7, 4);
  ASSERT_TRUE(WriteCheckpoint(folder / "b", contents).ok());
  const std::string text = base::ReadFile(folder / "b/MANIFEST").value();
  const auto manifest = ParseManifest(text);
  ASSERT_EQ(manifest.status(), absl::OkStatus());
  EXPECT_EQ(FormatManifest(*manifest), text);
  EXPECT_EQ(manifest->part, contents.part);
  EXPECT_EQ(manifest->base, contents.base);
  EXPECT_EQ(manifest->dense->size, 25u);
  EXPECT_EQ(manifest->dense->extents[1].begin, 7u);
  EXPECT_TRUE(absl::StrContains(text, "\"version\": 2,"));
  const std::vector<std::array<const char*, 3>> cases = {
      {"\"cut\":\"2-400\"", "\"cut\":\"2/400\"", "part.cut"},
      {"\"cut\":\"2-400\"", "\"cut\":\"..\"", "part.cut"},
      {"\"server\":1", "\"server\":3", "part.server"},
      {"\"shards\":[300,700]", "\"shards\":[700,300]", "part.shards"},
      {"\"shards\":[300,700]", "\"shards\":[300,1025]", "part.shards"},
      {"\"shards\":[300,700]", "\"shards\":[300]", "part.shards"},
      {"\"shards\":[300,700]", "\"shards\":[310,700]", "sparse[0].extents[0]"},
      {"\"dense\":[7,11]", "\"dense\":[7,12]", "dense.extents"},
      {"\"dense\":[7,11]", "\"dense\":[7,26]", "part.dense"},
      {"\"dense\":[7,11]", "\"dense\":[6,11]", "dense.extents[0]"},
      {"\"id\":\"a\"", "\"id\":\"../a\"", "base.id"},
      {"\"id\":\"a\"", "\"id\":7", "base.id"},
      {"\"version\": 2", "\"version\": 1", "manifest.version"},
  };
  for (const auto& [from, to, want] : cases) {
    ASSERT_TRUE(absl::StrContains(text, from)) << from;
    const absl::Status status =
        ParseManifest(absl::StrReplaceAll(text, {{from, to}}), ManifestChecksum::kIgnore).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << to;
    EXPECT_TRUE(absl::StrContains(status.message(), want)) << to << ": " << status;
  }
}

TEST(Manifest, IgnoresFieldsOfTheFutureAndFillsInThoseOfThePast) {
  std::string text = SomeManifest();
  text = absl::StrReplaceAll(
      text, {{"\"centered\":false", "\"invented\":[1,2]"}, {"\"seed\":18446744073709551615", "\"x\":0"}});
  const auto manifest = ParseManifest(text, ManifestChecksum::kIgnore);
  ASSERT_EQ(manifest.status(), absl::OkStatus());
  EXPECT_EQ(manifest->sparse[0].config.seed, 0u);
}

// Quadratic, this would take minutes.
TEST(Manifest, ManyFieldsThatAreNotKnownCostNothing) {
  std::string text = SomeManifest();
  std::string fields;
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&fields, "\"field", i, "\": ", i, ",\n");
  text.insert(1, fields);
  const auto manifest = ParseManifest(text, ManifestChecksum::kIgnore);
  ASSERT_EQ(manifest.status(), absl::OkStatus());
  EXPECT_EQ(*manifest, *ParseManifest(SomeManifest()));
}

TEST(Manifest, ManyTablesAreRefused) {
  std::string text = SomeManifest(), tables;
  for (int i = 0; i < 20'000; ++i) tables += "{},";
  const std::string begin = "\"sparse\": [";
  text.insert(text.find(begin) + begin.size(), tables);
  const auto manifest = ParseManifest(text, ManifestChecksum::kIgnore);
  EXPECT_TRUE(absl::StrContains(manifest.status().message(), "sparse: want at most 16384")) << manifest.status();
}

}  // namespace
}  // namespace regatta::checkpoint
