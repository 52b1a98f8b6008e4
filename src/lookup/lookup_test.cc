#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "lookup/key_plan.h"
#include "lookup/pooling.h"

namespace regatta::lookup {
namespace {

using base::Key;

struct Sample {
  std::vector<Key> keys;
  std::vector<uint32_t> offsets{0};
  std::vector<float> values;
};

Sample RandomBags(int bags, int max_ids, uint64_t vocabulary, bool weighted, uint64_t seed) {
  base::Rng rng(seed);
  Sample s;
  for (int b = 0; b < bags; ++b) {
    const int n = max_ids == 1 ? 1 : static_cast<int>(rng.Below(max_ids + 1));
    for (int i = 0; i < n; ++i) {
      s.keys.push_back(rng.Below(vocabulary) * 0x9E3779B97F4A7C15ULL);
      if (weighted) s.values.push_back(static_cast<float>(rng.Uniform()));
    }
    s.offsets.push_back(static_cast<uint32_t>(s.keys.size()));
  }
  return s;
}

TEST(Planner, KeysAreDistinctGroupedByShardAndComplete) {
  const Sample s = RandomBags(5000, 4, 3000, false, 1);
  Planner planner;
  KeyPlan plan;
  for (int round = 0; round < 2; ++round) planner.Plan({s.keys, s.offsets, s.values}, plan);
  EXPECT_EQ(std::set<Key>(plan.keys.begin(), plan.keys.end()), std::set<Key>(s.keys.begin(), s.keys.end()));
  EXPECT_EQ(std::set<Key>(plan.keys.begin(), plan.keys.end()).size(), plan.keys.size());
  ASSERT_EQ(plan.shard_begin.size(), static_cast<size_t>(base::kVirtualShards + 1));
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
    for (uint32_t u = plan.shard_begin[shard]; u < plan.shard_begin[shard + 1]; ++u)
      EXPECT_EQ(base::ShardOf(plan.keys[u]), shard);
  for (size_t p = 0; p < s.keys.size(); ++p) EXPECT_EQ(plan.keys[plan.row_of[p]], s.keys[p]);
}

TEST(Planner, EmptyBatchGivesAnEmptyPlan) {
  Planner planner;
  KeyPlan plan;
  const std::vector<uint32_t> offsets{0};
  planner.Plan({{}, offsets, {}}, plan);
  EXPECT_TRUE(plan.keys.empty());
  EXPECT_EQ(plan.shard_begin.back(), 0u);
}

// Pooling and merging against the definition, bag by bag, for widths with and without kernels of their own.
class PoolingTest : public testing::TestWithParam<std::tuple<int, int, Pooling, bool>> {};

TEST_P(PoolingTest, EqualsTheDefinition) {
  const auto [width, max_ids, pooling, weighted] = GetParam();
  const int slots = 5, samples = 40;
  const Sample s = RandomBags(slots * samples, max_ids, 60, weighted, 7);
  Planner planner;
  KeyPlan plan;
  planner.Plan({s.keys, s.offsets, s.values}, plan);
  std::vector<float> rows(plan.keys.size() * width);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(base::RandomNormal(3, i));
  const int64_t stride = slots * width + 3;
  std::vector<float> out(samples * stride, 77.0f);
  GatherPool(plan, pooling, {rows.data(), width, width}, {out.data(), stride, slots});

  std::vector<float> grads(samples * stride);
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = static_cast<float>(base::RandomNormal(4, i));
  std::vector<float> merged(plan.keys.size() * width, 55.0f);
  MergeGradients(plan, pooling, {grads.data(), stride, slots}, {merged.data(), width, width});

  std::vector<double> want_merged(merged.size(), 0.0);
  for (int b = 0; b < slots * samples; ++b) {
    const int count = static_cast<int>(s.offsets[b + 1] - s.offsets[b]);
    for (int j = 0; j < width; ++j) {
      const size_t at = (b / slots) * stride + (b % slots) * width + j;
      double want = 0;
      for (uint32_t p = s.offsets[b]; p < s.offsets[b + 1]; ++p) {
        const double scale =
            (weighted ? s.values[p] : 1.0) / (pooling == Pooling::kMean    ? static_cast<double>(count)
                                              : pooling == Pooling::kSqrtN ? std::sqrt(static_cast<double>(count))
                                                                           : 1.0);
        want += scale * rows[plan.row_of[p] * width + j];
        want_merged[plan.row_of[p] * width + j] += scale * grads[at];
      }
      EXPECT_NEAR(out[at], want, 1e-5);
    }
  }
  for (size_t i = 0; i < merged.size(); ++i) EXPECT_NEAR(merged[i], want_merged[i], 2e-5);
  for (int sample = 0; sample < samples; ++sample)  // columns beyond the bags are not ours
    for (int j = slots * width; j < stride; ++j) EXPECT_EQ(out[sample * stride + j], 77.0f);
}

INSTANTIATE_TEST_SUITE_P(Widths, PoolingTest,
                         testing::Combine(testing::Values(1, 7, 9, 10, 16, 33), testing::Values(1, 4),
                                          testing::Values(Pooling::kSum, Pooling::kMean, Pooling::kSqrtN),
                                          testing::Bool()));

}  // namespace
}  // namespace regatta::lookup
