#include "data/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/failpoint.h"
#include "base/file.h"
#include "data/dataset_factory.h"
#include "data/file_list.h"
#include "data/split.h"

namespace regatta::data {
namespace {

class GeneratorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/generator.XXXXXX";
    options_.out = mkdtemp(name.data());
    options_.samples = 3000;
  }
  void TearDown() override { EXPECT_TRUE(base::RemoveTree(options_.out).ok()); }

  std::vector<Batch> Read(const std::string& folder, const std::string& format) {
    DatasetOptions dataset_options;
    dataset_options.files = ExpandFiles(folder).value();
    dataset_options.format = format;
    dataset_options.batch_size = 1'000'000;
    dataset_options.max_bad_lines = 1;
    dataset_options.schema = CriteoSchema();
    auto dataset = MakeDataset(dataset_options).value();
    std::vector<Batch> batches;
    EXPECT_TRUE(dataset->BeginPass({}).ok());
    while (auto batch = dataset->Next().value()) batches.push_back(*batch);
    EXPECT_TRUE(dataset->EndPass().ok());
    EXPECT_EQ(dataset->progress().bad_lines, 0u);
    return batches;
  }

  GeneratorOptions options_;
};

TEST_F(GeneratorTest, IsAFunctionOfTheSeedWhateverFilesAndThreads) {
  ASSERT_TRUE(Generate(options_, nullptr).ok());
  const std::string one = base::ReadFile(options_.out + "/train/part-00000").value();
  options_.files = 4;
  options_.threads = 3;
  ASSERT_TRUE(Generate(options_, nullptr).ok());
  std::string joined;
  const std::vector<std::string> files = ExpandFiles(options_.out + "/train").value();
  for (const std::string& file : files) joined += base::ReadFile(file).value();
  EXPECT_EQ(joined, one);
  options_.truth.seed = 2;
  ASSERT_TRUE(Generate(options_, nullptr).ok());
  EXPECT_NE(base::ReadFile(options_.out + "/train/part-00000").value(), one.substr(0, 100));
}

TEST_F(GeneratorTest, EveryFormatHoldsTheSameSamples) {
  options_.truth.missing = 0.1;
  ASSERT_TRUE(Generate(options_, nullptr).ok());
  const Batch want = Read(options_.out + "/train", "slot_text").at(0);
  EXPECT_EQ(want.size, 3000);
  for (const std::string format : {"slot_reader", "multislot", "criteo_tsv"}) {
    options_.format = format;
    options_.compression = format == "multislot" ? Compression::kGzip : Compression::kZstd;
    ASSERT_TRUE(base::RemoveTree(options_.out + "/train").ok());
    ASSERT_TRUE(Generate(options_, nullptr).ok());
    const Batch got = Read(options_.out + "/train", format).at(0);
    EXPECT_EQ(got.labels, want.labels) << format;
    EXPECT_EQ(got.offsets, want.offsets) << format;
    if (format != "criteo_tsv") {
      EXPECT_EQ(got.keys, want.keys) << format;
      EXPECT_EQ(got.dense, want.dense) << format;
    } else {
      for (size_t i = 0; i < want.dense.size(); ++i) EXPECT_NEAR(got.dense[i], want.dense[i], 1e-6);
    }
  }
}

TEST_F(GeneratorTest, TheCeilingIsWrittenAndNearTheDefaultTarget) {
  options_.samples = 40'000;
  options_.test_samples = 20'000;
  const GeneratorResult result = Generate(options_, nullptr).value();
  EXPECT_NEAR(result.test.auc, 0.80, 0.03);
  EXPECT_NEAR(static_cast<double>(result.train.clicks) / 40'000, 0.25, 0.01);
  const auto json = nlohmann::json::parse(base::ReadFile(options_.out + "/ceiling.json").value());
  EXPECT_EQ(json["auc"].get<double>(), result.test.auc);
  EXPECT_EQ(json["samples"].get<uint64_t>(), 20'000u);
  EXPECT_EQ(json["train"]["auc"].get<double>(), result.train.auc);
  EXPECT_EQ(json["seed"].get<uint64_t>(), 1u);
  EXPECT_EQ(Read(options_.out + "/test", "slot_text").at(0).size, 20'000);
}

TEST_F(GeneratorTest, IdsOfDifferentSlotsAreDisjointAndZipf) {
  ASSERT_TRUE(Generate(options_, nullptr).ok());
  const Batch batch = Read(options_.out + "/train", "slot_text").at(0);
  std::map<uint64_t, std::pair<size_t, int>> seen;  // id → (slot, times)
  for (size_t i = 0; i < batch.keys.size(); ++i) {
    auto& [slot, times] = seen.emplace(batch.keys[i], std::make_pair(i % 26, 0)).first->second;
    EXPECT_EQ(slot, i % 26);
    ++times;
  }
  int most = 0;
  for (const auto& [id, entry] : seen) most = std::max(most, entry.second);
  EXPECT_GT(most, 3000 / 6) << "the commonest id of a slot is common";
  EXPECT_GT(seen.size(), 1000u);
}

TEST_F(GeneratorTest, AFullDiskLeavesNoFiles) {
  options_.files = 3;
  options_.threads = 1;
  for (const Compression compression : {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    options_.compression = compression;
    ASSERT_TRUE(base::ArmFailpoints("file.write=enospc@2").ok());  // the first file is whole by then
    EXPECT_EQ(Generate(options_, nullptr).status().code(), absl::StatusCode::kResourceExhausted);
    ASSERT_TRUE(base::ArmFailpoints("").ok());
    EXPECT_TRUE(std::filesystem::is_empty(options_.out + "/train"));
  }
}

TEST_F(GeneratorTest, SplitLeavesNothingOnAFullDisk) {
  ASSERT_TRUE(Generate(options_, nullptr).ok());
  const std::string file = options_.out + "/train/part-00000";
  ASSERT_TRUE(base::ArmFailpoints("file.write=enospc").ok());
  EXPECT_FALSE(SplitFile(file, 3, LineSplit::kContiguous).ok());
  ASSERT_TRUE(base::ArmFailpoints("").ok());
  EXPECT_EQ(ExpandFiles(options_.out + "/train").value(), std::vector{file});
  EXPECT_TRUE(SplitFile(file, 3, LineSplit::kContiguous).ok());
  EXPECT_EQ(ExpandFiles(options_.out + "/train").value().size(), 4u);
}

TEST_F(GeneratorTest, RefusesWhatCannotBe) {
  options_.truth.click_rate = 2;
  EXPECT_FALSE(Generate(options_, nullptr).ok());
  options_.truth.click_rate = 0.25;
  options_.format = "parquet";
  EXPECT_FALSE(Generate(options_, nullptr).ok());
  options_.format = "criteo_tsv";
  options_.truth.slots = 5;
  EXPECT_FALSE(Generate(options_, nullptr).ok());
}

TEST(ExactAuc, CountsPairsWithTiesAsHalf) {
  const std::vector<float> p = {0.1f, 0.4f, 0.4f, 0.8f, 0.4f, 0.05f};
  const std::vector<uint8_t> y = {0, 1, 0, 1, 1, 0};
  double want = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t j = 0; j < p.size(); ++j)
      if (y[i] == 1 && y[j] == 0) want += p[i] > p[j] ? 1 : p[i] == p[j] ? 0.5 : 0;
  EXPECT_DOUBLE_EQ(ExactAuc(p, y), want / 9);
  EXPECT_TRUE(std::isnan(ExactAuc({0.5f}, {1})));
}

}  // namespace
}  // namespace regatta::data
