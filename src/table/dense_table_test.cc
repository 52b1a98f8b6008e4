#include "table/dense_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace regatta::table {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

DenseTableConfig DenseConfig(const std::string& rule = "sgd") {
  DenseTableConfig config;
  config.parameters = {{"fc0.weight", {4, 3}, {"xavier_uniform", 0, 0}},
                       {"fc0.bias", {3}, {"zeros", 0, 0}},
                       {"scale", {}, {"constant", 2, 0}}};
  config.rule.name = rule;
  config.rule.learning_rate = 0.5;
  config.seed = 11;
  return config;
}

std::unique_ptr<DenseTable> MakeDense(const DenseTableConfig& config) {
  auto table = DenseTable::Create(config);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

absl::Status PushAll(DenseTable& table, const std::vector<float>& grads, const PushOptions& options = {}) {
  const base::DenseGrad piece{0, grads};
  return table.Push({&piece, 1}, options);
}

TEST(DenseTable, ParametersLieBackToBackWithTheirInitialValues) {
  auto table = MakeDense(DenseConfig());
  EXPECT_EQ(table->size(), 16);
  EXPECT_EQ(std::vector<int64_t>(table->offsets().begin(), table->offsets().end()),
            (std::vector<int64_t>{0, 12, 15, 16}));
  for (int i = 0; i < 12; ++i) EXPECT_LT(std::fabs(table->Values()[i]), std::sqrt(6.0 / 7));
  EXPECT_NE(table->Values()[0], table->Values()[1]);
  for (int i = 12; i < 15; ++i) EXPECT_EQ(table->Values()[i], 0);
  EXPECT_EQ(table->Values()[15], 2);
}

TEST(DenseTable, InitialValuesDependOnSeedAndNameOnly) {
  DenseTableConfig reordered = DenseConfig();
  std::swap(reordered.parameters[0], reordered.parameters[2]);
  auto a = MakeDense(DenseConfig());
  auto b = MakeDense(reordered);
  EXPECT_EQ(Copy(a->Values().first(12)), Copy(b->Values().last(12)));
  DenseTableConfig reseeded = DenseConfig();
  reseeded.seed = 12;
  EXPECT_NE(Copy(a->Values()), Copy(MakeDense(reseeded)->Values()));
}

TEST(DenseTable, PiecesInAnyOrderGiveTheSameBits) {
  auto whole = MakeDense(DenseConfig("adam"));
  auto pieces = MakeDense(DenseConfig("adam"));
  std::vector<float> grads(16);
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 16; ++i) grads[i] = static_cast<float>((i * 7 + step * 3) % 11) - 5;
    ASSERT_TRUE(PushAll(*whole, grads, {.samples = 3}).ok());
    const std::span<const float> g(grads);
    const std::vector<base::DenseGrad> parts = {{12, g.subspan(12)}, {0, g.first(5)}, {5, g.subspan(5, 7)}};
    ASSERT_TRUE(pieces->Push(parts, {.samples = 3}).ok());
  }
  EXPECT_EQ(Copy(whole->Values()), Copy(pieces->Values()));
  EXPECT_EQ(whole->updates(), 5u);
}

TEST(DenseTable, AGradientIsItsSumDividedBySamples) {
  auto table = MakeDense(DenseConfig());
  ASSERT_TRUE(PushAll(*table, std::vector<float>(16, 6.0f), {.samples = 3}).ok());
  EXPECT_EQ(table->Values()[15], 2 - 0.5f * 2);
}

TEST(DenseTable, ThePushsOwnLearningRateGoesBeforeTheSchedule) {
  auto table = MakeDense(DenseConfig());
  const std::vector<float> grads(16, 6.0f);
  const base::DenseGrad piece{0, grads};
  ASSERT_TRUE(table->Push({&piece, 1}, {.samples = 3}, 0.125f).ok());
  EXPECT_EQ(table->Values()[15], 2 - 0.125f * 2);
  ASSERT_TRUE(table->Push({&piece, 1}, {.samples = 3}).ok());
  EXPECT_EQ(table->Values()[15], 2 - 0.125f * 2 - 0.5f * 2);
  const std::vector<float> before = Copy(table->Values());
  for (const float rate : {kNan, -1.0f, std::numeric_limits<float>::infinity(), 1e7f})
    EXPECT_EQ(table->Push({&piece, 1}, {}, rate).code(), absl::StatusCode::kInvalidArgument) << rate;
  EXPECT_EQ(Copy(table->Values()), before);
  EXPECT_EQ(table->updates(), 2u);
}

TEST(DenseTable, GradientsThatDoNotCoverEveryElementOnceAreRefused) {
  auto table = MakeDense(DenseConfig());
  const std::vector<float> before = Copy(table->Values());
  const std::vector<float> g(17, 1.0f);
  const std::span<const float> span(g);
  const std::vector<std::vector<base::DenseGrad>> bad = {
      {},
      {{0, span.first(15)}},
      {{0, span}},
      {{0, span.first(8)}, {9, span.first(7)}},
      {{0, span.first(9)}, {8, span.first(8)}},
      {{-1, span.first(17)}},
      {{0, span.first(16)}, {0, span.first(16)}},
  };
  for (const auto& pieces : bad) {
    EXPECT_EQ(table->Push(pieces, {}).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(PushAll(*table, std::vector<float>(16, 1.0f), {.samples = 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Copy(table->Values()), before);
  EXPECT_EQ(table->updates(), 0u);
}

TEST(DenseTable, NanPolicies) {
  auto table = MakeDense(DenseConfig());
  const std::vector<float> before = Copy(table->Values());
  std::vector<float> grads(16, 1.0f);
  grads[13] = kNan;
  ASSERT_TRUE(PushAll(*table, grads).ok());
  EXPECT_EQ(table->skipped_gradients(), 1u);
  EXPECT_EQ(table->updates(), 0u);
  EXPECT_EQ(Copy(table->Values()), before);

  const absl::Status abort = PushAll(*table, grads, {.nan_policy = NanPolicy::kAbort});
  EXPECT_EQ(abort.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(abort.message().find("fc0.bias"), std::string::npos) << abort;
  EXPECT_NE(abort.message().find("element 1"), std::string::npos) << abort;
  EXPECT_EQ(Copy(table->Values()), before);

  ASSERT_TRUE(PushAll(*table, grads, {.nan_policy = NanPolicy::kClip}).ok());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(table->Values()[i], i == 13 ? before[i] : before[i] - 0.5f) << i;
  EXPECT_EQ(table->updates(), 1u);
}

TEST(DenseTable, ALoadedTableGoesOnLikeTheSavedOne) {
  auto saved = MakeDense(DenseConfig("adam"));
  const std::vector<float> grads(16, 0.25f);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(PushAll(*saved, grads).ok());
  ASSERT_EQ(saved->state_count(), 2);
  const std::vector<std::vector<float>> states = {Copy(saved->State(0)), Copy(saved->State(1))};
  auto loaded = MakeDense(DenseConfig("adam"));
  ASSERT_TRUE(loaded->Load(saved->Values(), states, saved->updates()).ok());
  EXPECT_EQ(loaded->updates(), 3u);
  ASSERT_TRUE(PushAll(*saved, grads).ok());
  ASSERT_TRUE(PushAll(*loaded, grads).ok());
  EXPECT_EQ(Copy(saved->Values()), Copy(loaded->Values()));
  EXPECT_FALSE(loaded->Load(saved->Values().first(3), states, 1).ok());
  EXPECT_FALSE(loaded->Load(saved->Values(), std::span(states).first(1), 1).ok());
}

TEST(DenseTable, BadConfigsAreRefusedByName) {
  const auto refused = [](const DenseTableConfig& config, const std::string& word) {
    const auto table = DenseTable::Create(config);
    ASSERT_FALSE(table.ok()) << word;
    EXPECT_NE(table.status().message().find(word), std::string::npos) << table.status();
  };
  DenseTableConfig config = DenseConfig();
  config.parameters[1].shape = {3, 0};
  refused(config, "fc0.bias");
  config = DenseConfig();
  config.parameters[1].shape = {int64_t{1} << 62, int64_t{1} << 62};
  refused(config, "fc0.bias");
  config = DenseConfig();
  config.parameters[1].name = "fc0.weight";
  refused(config, "fc0.weight");
  config = DenseConfig();
  config.parameters[2].init.name = "ones";
  refused(config, "scale");
  refused(DenseConfig("std_adagrad"), "decayed_adagrad");
}

// Servers hold blocks: together they are the whole table, bit for bit.
TEST(DenseTable, BlocksStepAsTheWholeDoes) {
  const DenseTableConfig config = DenseConfig("adam");
  auto whole = MakeDense(config);
  const int64_t size = whole->size();
  std::vector<float> grads(static_cast<size_t>(size));
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = static_cast<float>(i % 13) - 6;
  std::vector<std::unique_ptr<DenseTable>> blocks;
  for (int64_t b = 0; b < 3; ++b)
    blocks.push_back(DenseTable::CreateBlock(config, size * b / 3, size * (b + 1) / 3).value());
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(PushAll(*whole, grads).ok());
    for (int64_t b = 0; b < 3; ++b) {
      const std::vector<float> part(grads.begin() + size * b / 3, grads.begin() + size * (b + 1) / 3);
      ASSERT_TRUE(PushAll(*blocks[static_cast<size_t>(b)], part).ok());
    }
  }
  std::vector<float> joined;
  for (const auto& block : blocks) joined.insert(joined.end(), block->Values().begin(), block->Values().end());
  EXPECT_EQ(joined, std::vector<float>(whole->Values().begin(), whole->Values().end()));
  EXPECT_FALSE(DenseTable::CreateBlock(config, 1, size + 1).ok());

  const std::vector<float> before = joined, ones(before.size(), 1.0f);
  ASSERT_TRUE(whole->Add(ones, NanPolicy::kSkip).ok());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(whole->Values()[i], before[i] + 1.0f);
  EXPECT_FALSE(whole->Add({ones.data(), 1}, NanPolicy::kSkip).ok());
}

TEST(DenseTable, DifferencesThatAreNoNumbersGoByThePolicy) {
  auto table = MakeDense(DenseConfig());
  const std::vector<float> before(table->Values().begin(), table->Values().end());
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf}) {
    std::vector<float> differences(before.size(), 1.0f);
    differences[1] = bad;
    EXPECT_TRUE(table->Add(differences, NanPolicy::kSkip).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(table->Add(differences, NanPolicy::kAbort)));
    EXPECT_EQ(std::vector<float>(table->Values().begin(), table->Values().end()), before);
  }
  EXPECT_EQ(table->skipped_gradients(), 3u);
  std::vector<float> differences(before.size(), 1.0f);
  differences[1] = nan;
  ASSERT_TRUE(table->Add(differences, NanPolicy::kClip).ok());
  EXPECT_EQ(table->Values()[0], before[0] + 1.0f);
  EXPECT_EQ(table->Values()[1], before[1]);
}

TEST(DenseTable, ASnapshotIsNeverHalfAnUpdate) {
  DenseTableConfig config = DenseConfig();
  config.parameters = {{"w", {10'000}, {"zeros", 0, 0}}};
  config.rule.learning_rate = 1;
  auto table = MakeDense(config);
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&] {
      const std::vector<float> ones(10'000, 1.0f);
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(PushAll(*table, ones).ok());
    });
  }
  std::vector<float> out(10'000);
  for (int i = 0; i < 50; ++i) {
    table->Snapshot(out);
    EXPECT_EQ(out, std::vector<float>(10'000, out[0]));
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(table->Values()[9'999], -100);
}

TEST(DenseTable, ACopyIsTheTableAfterSomeWholePush) {
  DenseTableConfig config = DenseConfig("adam");
  config.parameters = {{"w", {5'000}, {"zeros", 0, 0}}};
  auto table = MakeDense(config);
  std::thread writer([&] {
    const std::vector<float> ones(5'000, 1.0f);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(PushAll(*table, ones).ok());
  });
  for (uint64_t seen = 0; seen < 100;) {
    const DenseCopy copy = table->Copy();
    ASSERT_EQ(copy.values, std::vector<float>(5'000, copy.values[0]));
    ASSERT_EQ(copy.states.size(), 2u);
    for (const auto& state : copy.states) ASSERT_EQ(state, std::vector<float>(5'000, state[0]));
    ASSERT_GE(copy.updates, seen);
    ASSERT_EQ(copy.updates > 0, copy.values[0] != 0);
    seen = copy.updates;
  }
  writer.join();
}

}  // namespace
}  // namespace regatta::table
