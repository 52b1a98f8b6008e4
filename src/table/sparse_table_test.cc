#include "table/sparse_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/grouped_keys.h"
#include "base/random.h"

namespace regatta::table {
namespace {

constexpr base::Key kLastKey = std::numeric_limits<base::Key>::max();
constexpr float kNanGradient = std::numeric_limits<float>::quiet_NaN();

SparseTableConfig SparseConfig(const std::string& rule = "std_adagrad", int dim = 4) {
  SparseTableConfig config;
  config.name = "embedding";
  config.dim = dim;
  config.rule.name = rule;
  config.seed = 7;
  return config;
}

std::unique_ptr<SparseTable> MakeSparse(const SparseTableConfig& config) {
  auto table = SparseTable::Create(config);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

std::vector<base::Key> SomeKeys(size_t n, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<base::Key> keys(n);
  for (base::Key& key : keys) key = rng();
  return keys;
}

// Rows as they come: keys.size() × pull_width.
std::vector<float> Pull(const SparseTable& table, const base::GroupedKeys& keys,
                        base::StepKind kind = base::StepKind::kTrain) {
  std::vector<float> out(keys.size() * static_cast<size_t>(table.pull_width()), -99);
  const absl::Status s = table.Pull(keys.view(), kind, {out.data(), table.pull_width(), table.pull_width()});
  EXPECT_TRUE(s.ok()) << s;
  return out;
}

absl::Status Push(SparseTable& table, const base::GroupedKeys& keys, const std::vector<float>& grads,
                  const PushOptions& options = {}) {
  base::TableGrads push;
  push.keys = keys.view();
  push.grads = {grads.data(), table.push_width(), table.push_width()};
  return table.Push(push, options);
}

std::vector<float> Ones(const SparseTable& table, const base::GroupedKeys& keys) {
  return std::vector<float>(keys.size() * static_cast<size_t>(table.push_width()), 1.0f);
}

std::map<base::Key, std::vector<float>> Contents(const SparseTable& table) {
  std::map<base::Key, std::vector<float>> rows;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    table.ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
      EXPECT_EQ(base::ShardOf(key), shard);
      EXPECT_TRUE(rows.emplace(key, std::vector<float>(row.begin(), row.end())).second) << key;
    });
  }
  return rows;
}

TEST(SparseTable, ATrainingPullOfARowThatIsNotCreatedYetGivesItsInitialValueAndCreatesNothing) {
  auto table = MakeSparse(SparseConfig());
  const base::GroupedKeys keys({0, 1, 42, kLastKey});
  const std::vector<float> before = Pull(*table, keys);
  EXPECT_EQ(table->rows(), 0u);
  for (const float w : before) {
    EXPECT_GE(w, -1e-4f);
    EXPECT_LT(w, 1e-4f);
    EXPECT_NE(w, 0);
  }
  EXPECT_EQ(std::set<float>(before.begin(), before.end()).size(), before.size());  // every key and element its own
  ASSERT_TRUE(Push(*table, keys, std::vector<float>(before.size(), 0.0f)).ok());   // created, not moved
  EXPECT_EQ(table->rows(), 4u);
  EXPECT_EQ(Pull(*table, keys), before);
}

TEST(SparseTable, AnInferencePullOfAnUnknownKeyIsZerosAndCreatesNothing) {
  auto table = MakeSparse(SparseConfig());
  const base::GroupedKeys known({5});
  ASSERT_TRUE(Push(*table, known, Ones(*table, known)).ok());
  const base::GroupedKeys unknown({6, 7, 0});
  EXPECT_EQ(Pull(*table, unknown, base::StepKind::kInfer), std::vector<float>(12, 0.0f));
  EXPECT_EQ(table->rows(), 1u);
  EXPECT_EQ(Pull(*table, known, base::StepKind::kInfer), Pull(*table, known));
}

TEST(SparseTable, FirstAndLastKeyAreOrdinaryKeys) {
  auto table = MakeSparse(SparseConfig("sgd"));
  const base::GroupedKeys keys({0, kLastKey});
  std::vector<float> expected = Pull(*table, keys);
  ASSERT_TRUE(Push(*table, keys, Ones(*table, keys)).ok());
  for (float& w : expected) w -= 0.05f * 1.0f;
  EXPECT_EQ(Pull(*table, keys), expected);
  EXPECT_EQ(Contents(*table).count(0), 1u);
  EXPECT_EQ(Contents(*table).count(kLastKey), 1u);
}

TEST(SparseTable, InitialValuesDependOnSeedNameAndKeyAndNotOnArrival) {
  const std::vector<base::Key> all = SomeKeys(3000, 1);
  auto forward = MakeSparse(SparseConfig("adam"));
  auto backward = MakeSparse(SparseConfig("adam"));
  const base::GroupedKeys whole(all);
  const std::vector<float> zeros(whole.size() * 4, 0.0f);
  ASSERT_TRUE(Push(*forward, whole, zeros).ok());
  for (size_t end = all.size(); end > 0; end -= 500) {
    const base::GroupedKeys part(
        std::vector<base::Key>(all.begin() + static_cast<int64_t>(end - 500), all.begin() + static_cast<int64_t>(end)));
    ASSERT_TRUE(Push(*backward, part, std::vector<float>(part.size() * 4, 0.0f)).ok());
  }
  EXPECT_EQ(Contents(*forward), Contents(*backward));

  SparseTableConfig other_seed = SparseConfig("adam");
  other_seed.seed = 8;
  SparseTableConfig other_name = SparseConfig("adam");
  other_name.name = "wide";
  EXPECT_NE(Pull(*MakeSparse(other_seed), whole), Pull(*forward, whole));
  EXPECT_NE(Pull(*MakeSparse(other_name), whole), Pull(*forward, whole));
}

TEST(SparseTable, AGradientIsItsSumDividedBySamples) {
  auto table = MakeSparse(SparseConfig("sgd"));
  const base::GroupedKeys keys({9});
  const std::vector<float> before = Pull(*table, keys);
  ASSERT_TRUE(Push(*table, keys, {3, 6, 9, 12}, {.samples = 3}).ok());
  const std::vector<float> after = Pull(*table, keys);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(after[i], before[i] - 0.05f * static_cast<float>(i + 1));
}

TEST(SparseTable, TheScheduleTakesThePushedStep) {
  SparseTableConfig config = SparseConfig("sgd");
  config.rule.learning_rate = 1;
  config.schedule.name = "piecewise";
  config.schedule.boundaries = {10};
  config.schedule.values = {1, 0.5};
  config.init.name = "zeros";
  auto table = MakeSparse(config);
  const base::GroupedKeys keys({9});
  ASSERT_TRUE(Push(*table, keys, {1, 1, 1, 1}, {.step = 10}).ok());
  EXPECT_EQ(Pull(*table, keys)[0], -0.5f);
  ASSERT_TRUE(Push(*table, keys, {1, 1, 1, 1}, {.step = 9}).ok());
  EXPECT_EQ(Pull(*table, keys)[0], -1.5f);
}

TEST(SparseTable, ThePushsOwnLearningRateGoesBeforeTheSchedule) {
  SparseTableConfig config = SparseConfig("sgd", 1);
  config.init = {"constant", 0, 0};
  config.rule.learning_rate = 0.5;
  auto table = MakeSparse(config);
  const base::GroupedKeys keys({7});
  const float grad = 4;
  base::TableGrads push;
  push.keys = keys.view();
  push.grads = {&grad, 1, 1};
  float want = 0;
  for (const std::optional<float> rate : {std::optional<float>(0.25f), {}, {2.0f}, {0.0f}}) {
    push.learning_rate = rate;
    ASSERT_TRUE(table->Push(push, {.samples = 2}).ok());
    want -= rate.value_or(0.5f) * 2;
    EXPECT_EQ(Pull(*table, keys)[0], want);
  }
}

TEST(SparseTable, LearningRatesThatCannotBeAreRefusedAndChangeNothing) {
  auto table = MakeSparse(SparseConfig("ftrl", 1));
  const base::GroupedKeys keys({7});
  const float grad = 4;
  base::TableGrads push;
  push.keys = keys.view();
  push.grads = {&grad, 1, 1};
  for (const float rate : {kNanGradient, -1.0f, std::numeric_limits<float>::infinity(), 1e7f, 0.0f}) {
    push.learning_rate = rate;
    const absl::Status status = table->Push(push, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << rate;
    EXPECT_NE(status.message().find("table embedding"), std::string::npos) << status;
    EXPECT_EQ(table->CheckLearningRate(rate).code(), absl::StatusCode::kInvalidArgument) << rate;
  }
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_TRUE(table->CheckLearningRate(std::nullopt).ok());
  EXPECT_TRUE(MakeSparse(SparseConfig("sgd"))->CheckLearningRate(0.0f).ok()) << "only ftrl divides by it";
}

TEST(SparseTable, HoldsEveryRowThroughGrowth) {
  auto table = MakeSparse(SparseConfig("sgd", 3));
  const std::vector<base::Key> all = SomeKeys(200'000, 3);
  for (size_t begin = 0; begin < all.size(); begin += 10'000) {
    const base::GroupedKeys part(std::vector<base::Key>(all.begin() + static_cast<int64_t>(begin),
                                                        all.begin() + static_cast<int64_t>(begin + 10'000)));
    ASSERT_TRUE(Push(*table, part, Ones(*table, part)).ok());
  }
  EXPECT_EQ(table->rows(), 200'000u);
  const base::GroupedKeys whole(all);
  auto untouched = MakeSparse(SparseConfig("sgd", 3));
  std::vector<float> expected = Pull(*untouched, whole);
  for (float& w : expected) w -= 0.05f;
  EXPECT_EQ(Pull(*table, whole, base::StepKind::kInfer), expected);
  uint64_t rows = 0;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) rows += table->ShardRows(shard);
  EXPECT_EQ(rows, 200'000u);
  EXPECT_GT(table->memory_bytes(), 200'000u * (16 + 16));
  EXPECT_LT(table->memory_bytes(), 200'000u * 80);
}

TEST(SparseTable, OneShardMayHoldManyRows) {
  auto table = MakeSparse(SparseConfig("sgd", 2));
  std::vector<base::Key> keys;
  for (base::Key key = 0; keys.size() < 5000; ++key) {
    if (base::ShardOf(key) == 77) keys.push_back(key);
  }
  const base::GroupedKeys batch(keys);
  const std::vector<float> before = Pull(*table, batch);
  ASSERT_TRUE(Push(*table, batch, std::vector<float>(10'000, 0.0f)).ok());
  EXPECT_EQ(table->ShardRows(77), 5000u);
  EXPECT_EQ(Pull(*table, batch, base::StepKind::kInfer), before);
}

TEST(SparseTable, LoadedRowsEqualTheSavedOnes) {
  auto saved = MakeSparse(SparseConfig("adam"));
  const base::GroupedKeys keys(SomeKeys(5000, 5));
  ASSERT_TRUE(Push(*saved, keys, Ones(*saved, keys)).ok());
  auto loaded = MakeSparse(SparseConfig("adam"));
  const base::GroupedKeys old({keys.keys()[17]});  // there already: loading replaces it
  ASSERT_TRUE(Push(*loaded, old, {5, 5, 5, 5}).ok());
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    std::vector<base::Key> shard_keys;
    std::vector<float> rows;
    saved->ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
      shard_keys.push_back(key);
      rows.insert(rows.end(), row.begin(), row.end());
    });
    ASSERT_TRUE(loaded->Load(shard, shard_keys, rows).ok());
  }
  EXPECT_EQ(Contents(*loaded), Contents(*saved));
  ASSERT_TRUE(Push(*saved, keys, Ones(*saved, keys)).ok());
  ASSERT_TRUE(Push(*loaded, keys, Ones(*loaded, keys)).ok());
  EXPECT_EQ(Contents(*loaded), Contents(*saved));
}

TEST(SparseTable, LoadRefusesKeysOfAnotherShardAndWrongWidths) {
  auto table = MakeSparse(SparseConfig("sgd"));
  const std::vector<base::Key> key = {1};
  const uint32_t shard = base::ShardOf(1);
  const std::vector<float> row(4, 1.0f);
  EXPECT_EQ(table->Load((shard + 1) % base::kVirtualShards, key, row).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table->Load(shard, key, std::span(row).first(3)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table->rows(), 0u);
}

TEST(SparseTable, ClearLeavesAnEmptyUsableTable) {
  auto table = MakeSparse(SparseConfig());
  const base::GroupedKeys keys(SomeKeys(10'000, 6));
  ASSERT_TRUE(Push(*table, keys, Ones(*table, keys)).ok());
  const auto first = Contents(*table);
  table->Clear();
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_TRUE(Contents(*table).empty());
  EXPECT_EQ(Pull(*table, keys, base::StepKind::kInfer), std::vector<float>(keys.size() * 4, 0.0f));
  ASSERT_TRUE(Push(*table, keys, Ones(*table, keys)).ok());
  EXPECT_EQ(Contents(*table), first);
}

TEST(SparseTable, SkippedGradientsLeaveTheirRowsAloneAndAreCounted) {
  auto table = MakeSparse(SparseConfig());
  const base::GroupedKeys keys(SomeKeys(100, 7));
  std::vector<float> grads = Ones(*table, keys);
  grads[4 * 3 + 1] = kNanGradient;
  grads[4 * 70 + 3] = -std::numeric_limits<float>::infinity();
  ASSERT_TRUE(Push(*table, keys, grads).ok());
  EXPECT_EQ(table->skipped_gradients(), 2u);
  EXPECT_EQ(table->rows(), 98u);
  const auto rows = Contents(*table);
  EXPECT_EQ(rows.count(keys.keys()[3]), 0u);
  EXPECT_EQ(rows.count(keys.keys()[70]), 0u);
  EXPECT_EQ(rows.count(keys.keys()[4]), 1u);
}

TEST(SparseTable, AbortAppliesNothingAndNamesTableAndKey) {
  auto table = MakeSparse(SparseConfig());
  const base::GroupedKeys keys(SomeKeys(100, 8));
  std::vector<float> grads = Ones(*table, keys);
  grads[4 * 99 + 2] = kNanGradient;
  const absl::Status s = Push(*table, keys, grads, {.nan_policy = NanPolicy::kAbort});
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(s.message().find("embedding"), std::string::npos) << s;
  EXPECT_NE(s.message().find(std::to_string(keys.keys()[99])), std::string::npos) << s;
  EXPECT_EQ(table->rows(), 0u);
}

TEST(SparseTable, ClipTakesZeroForWhatIsNotANumber) {
  auto table = MakeSparse(SparseConfig("sgd"));
  const base::GroupedKeys keys(SomeKeys(50, 9));
  const std::vector<float> before = Pull(*table, keys);
  std::vector<float> grads = Ones(*table, keys);
  grads[4 * 20 + 1] = kNanGradient;
  ASSERT_TRUE(Push(*table, keys, grads, {.nan_policy = NanPolicy::kClip}).ok());
  const std::vector<float> after = Pull(*table, keys);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i], i == 81 ? before[i] : before[i] - 0.05f) << i;
  EXPECT_EQ(table->skipped_gradients(), 0u);
}

TEST(SparseTable, StridedViewsAreReadAndWrittenInPlace) {
  auto table = MakeSparse(SparseConfig("sgd", 3));
  const base::GroupedKeys keys(SomeKeys(40, 10));
  const std::vector<float> before = Pull(*table, keys);
  std::vector<float> grads(40 * 5, kNanGradient);  // the gaps are never looked at
  for (int i = 0; i < 40; ++i) std::fill_n(grads.begin() + i * 5, 3, 1.0f);
  base::TableGrads push;
  push.keys = keys.view();
  push.grads = {grads.data(), 5, 3};
  ASSERT_TRUE(table->Push(push, {}).ok());
  std::vector<float> out(40 * 4, -1);
  ASSERT_TRUE(table->Pull(keys.view(), base::StepKind::kTrain, {out.data(), 4, 3}).ok());
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_EQ(out[i * 4 + j], before[i * 3 + j] - 0.05f);
    EXPECT_EQ(out[i * 4 + 3], -1);
  }
}

TEST(SparseTable, KeysOutOfOrderAreRefused) {
  auto table = MakeSparse(SparseConfig("sgd"));
  std::vector<base::Key> keys = base::GroupedKeys(SomeKeys(100, 11)).keys();
  std::swap(keys[0], keys[90]);
  std::vector<float> rows(400, 1.0f);
  const base::TableKeys view{0, keys, {}};
  EXPECT_EQ(table->Pull(view, base::StepKind::kTrain, {rows.data(), 4, 4}).code(), absl::StatusCode::kInvalidArgument);
  base::TableGrads push;
  push.keys = view;
  push.grads = {rows.data(), 4, 4};
  EXPECT_EQ(table->Push(push, {}).code(), absl::StatusCode::kInvalidArgument);
  const base::GroupedKeys good(keys);  // and no lock was left behind
  EXPECT_TRUE(Push(*table, good, Ones(*table, good)).ok());
}

TEST(SparseTable, BadConfigsAndBadCallsAreRefusedByName) {
  const auto refused = [](const SparseTableConfig& config, const std::string& word) {
    const auto table = SparseTable::Create(config);
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(table.status().message().find(word), std::string::npos) << table.status();
  };
  SparseTableConfig config = SparseConfig();
  config.dim = 0;
  refused(config, "dim");
  config = SparseConfig();
  config.name.clear();
  refused(config, "name");
  refused(SparseConfig("adamw"), "std_adagrad");
  refused(SparseConfig("adamax"), "there is no 'adamax'");
  config = SparseConfig();
  config.accessor = "ctr2";
  refused(config, "plain");
  config = SparseConfig();
  config.init.name = "xavier_uniform";
  refused(config, "initializer");
  config = SparseConfig("adam");
  config.rule.beta1 = 1;
  refused(config, "beta1");
  config = SparseConfig();
  config.schedule.name = "step";
  refused(config, "cosine");

  auto table = MakeSparse(SparseConfig());
  const base::GroupedKeys keys({1});
  std::vector<float> row(4);
  EXPECT_FALSE(table->Pull(keys.view(), base::StepKind::kTrain, {row.data(), 3, 3}).ok());
  EXPECT_FALSE(table->Pull(keys.view(), base::StepKind::kTrain, {row.data(), 4, 4, base::Device::kCuda}).ok());
  EXPECT_FALSE(Push(*table, keys, row, {.samples = 0}).ok());
  EXPECT_EQ(table->rows(), 0u);
}

TEST(SparseTable, DifferencesThatAreNoNumbersGoByThePolicy) {
  auto table = MakeSparse(SparseConfig("sgd", 4));
  const base::GroupedKeys keys(SomeKeys(50, 3));
  std::vector<float> rows(keys.size() * 4, 1.0f);
  rows[4 * 7 + 2] = std::numeric_limits<float>::quiet_NaN();
  base::TableGrads differences;
  differences.keys = keys.view();
  differences.grads = {rows.data(), 4, 4};
  EXPECT_TRUE(absl::IsFailedPrecondition(table->Add(differences, NanPolicy::kAbort)));
  EXPECT_EQ(table->rows(), 0u) << "nothing was applied";
  EXPECT_TRUE(table->Add(differences, NanPolicy::kSkip).ok());
  EXPECT_EQ(table->rows(), 49u);
  EXPECT_EQ(table->skipped_gradients(), 1u);
}

TEST(SparseTable, ClearsSomeShardsAndLeavesTheOthers) {
  auto table = MakeSparse(SparseConfig("adam", 4));
  auto twin = MakeSparse(SparseConfig("adam", 4));
  const base::GroupedKeys keys(SomeKeys(3000, 3));
  constexpr uint32_t kHalf = base::kVirtualShards / 2;
  std::vector<base::Key> upper;
  for (const base::Key key : keys.keys())
    if (base::ShardOf(key) >= kHalf) upper.push_back(key);
  const base::GroupedKeys kept(upper);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Push(*table, keys, Ones(*table, keys)).ok());
    ASSERT_TRUE(Push(*twin, keys, Ones(*twin, keys)).ok());
  }
  const uint64_t bytes = table->memory_bytes();
  for (int i = 0; i < 3; ++i) {  // its memory is used again
    table->ClearShards(0, kHalf);
    EXPECT_EQ(table->rows(), kept.size());
    EXPECT_EQ(Pull(*table, kept), Pull(*twin, kept));
    ASSERT_TRUE(Push(*table, keys, Ones(*table, keys)).ok());
    ASSERT_TRUE(Push(*twin, kept, Ones(*twin, kept)).ok());
    EXPECT_EQ(table->rows(), keys.size());
    EXPECT_LE(table->memory_bytes(), bytes);
  }
  table->ClearShards(0, kHalf);
  table->ClearShards(kHalf, base::kVirtualShards);
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_LT(table->memory_bytes(), bytes / 2) << "the system has it back";
}

// Rows whose elements are all equal stay so under any interleaving of whole-row updates.
TEST(SparseTable, AddMovesWeightsAndAssignReplacesThemWithoutTouchingTheState) {
  auto table = MakeSparse(SparseConfig("adam", 4));
  auto twin = MakeSparse(SparseConfig("adam", 4));
  const base::GroupedKeys keys(SomeKeys(50, 3)), more(SomeKeys(20, 4));
  ASSERT_TRUE(Push(*table, keys, Ones(*table, keys)).ok());
  ASSERT_TRUE(Push(*twin, keys, Ones(*twin, keys)).ok());
  const auto differences = [](const base::GroupedKeys& k, const std::vector<float>& rows) {
    base::TableGrads view;
    view.keys = k.view();
    view.grads = {rows.data(), 4, 4};
    return view;
  };
  const std::vector<float> before = Pull(*table, keys), created = Pull(*table, more);
  const std::vector<float> halves(keys.size() * 4, 0.5f), quarters(more.size() * 4, 0.25f);
  ASSERT_TRUE(table->Add(differences(keys, halves), NanPolicy::kSkip).ok());
  ASSERT_TRUE(table->Add(differences(more, quarters), NanPolicy::kSkip).ok());
  std::vector<float> want = before;
  for (float& w : want) w += 0.5f;
  EXPECT_EQ(Pull(*table, keys), want);
  want = created;
  for (float& w : want) w += 0.25f;
  EXPECT_EQ(Pull(*table, more), want) << "a missing row is created with its initial value";
  // Back to where the twin is: the next step of the rule is the same, because its state was left alone.
  ASSERT_TRUE(table->Assign(differences(keys, before)).ok());
  ASSERT_TRUE(Push(*table, keys, Ones(*table, keys)).ok());
  ASSERT_TRUE(Push(*twin, keys, Ones(*twin, keys)).ok());
  EXPECT_EQ(Pull(*table, keys), Pull(*twin, keys));
}

TEST(SparseTable, ConcurrentPullsAndPushesAreRowAtomic) {
  SparseTableConfig config = SparseConfig("sgd", 12);
  config.init.name = "zeros";
  config.rule.learning_rate = 1;
  auto table = MakeSparse(config);
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  const std::vector<base::Key> all = SomeKeys(1500, 12);
  std::vector<std::thread> threads;
  std::atomic<int> torn{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const size_t begin = static_cast<size_t>((round + t) % 3) * 500;
        const base::GroupedKeys keys(std::vector<base::Key>(all.begin() + static_cast<int64_t>(begin),
                                                            all.begin() + static_cast<int64_t>(begin + 500)));
        if (!Push(*table, keys, Ones(*table, keys)).ok()) ++torn;
        const std::vector<float> rows = Pull(*table, keys);
        for (size_t i = 0; i < rows.size(); i += 12) {
          for (size_t j = 1; j < 12; ++j) torn += rows[i + j] != rows[i];
        }
      }
    });
  }
  uint64_t visited = 0;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    table->ForEachRow(shard, [&](base::Key, std::span<const float> row) {
      ++visited;
      for (const float w : row) torn += w != row[0];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_LE(visited, 1500u);
  const base::GroupedKeys whole(all);
  EXPECT_EQ(Pull(*table, whole), std::vector<float>(1500 * 12, -static_cast<float>(kThreads * kRounds / 3)));
}

}  // namespace
}  // namespace regatta::table
