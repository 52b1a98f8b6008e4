#include "lookup/chosen_slots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "lookup/bag_selection.h"

namespace regatta::lookup {
namespace {

constexpr int kSlots = 4, kSamples = 30, kWidth = 3;

struct RandomBatch {
  explicit RandomBatch(bool weighted) {
    base::Rng rng(5);
    for (int b = 0; b < kSlots * kSamples; ++b) {
      const auto n = static_cast<int>(rng.Below(4));
      for (int i = 0; i < n; ++i) {
        keys.push_back(rng.Below(40) * 0x9E3779B97F4A7C15ULL);
        if (weighted) values.push_back(static_cast<float>(rng.Uniform()));
      }
      offsets.push_back(static_cast<uint32_t>(keys.size()));
    }
  }
  Bags bags() const { return {keys, offsets, values}; }
  double value(uint32_t p) const { return values.empty() ? 1 : values[p]; }

  std::vector<base::Key> keys;
  std::vector<uint32_t> offsets{0};
  std::vector<float> values;
};

std::vector<float> RandomFloats(size_t n, uint64_t seed) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(base::RandomNormal(seed, i));
  return out;
}

double ScaleOf(Pooling pooling, double n) {
  return pooling == Pooling::kMean ? 1 / n : pooling == Pooling::kSqrtN ? 1 / std::sqrt(n) : 1;
}

class ChosenSlotsTest : public testing::TestWithParam<std::tuple<Pooling, bool>> {};

// Slots 2 and 0 of a plan of four, in this order, against the definition.
TEST_P(ChosenSlotsTest, PoolingEqualsTheDefinition) {
  const auto [pooling, weighted] = GetParam();
  const RandomBatch batch(weighted);
  KeyPlan plan;
  Planner().Plan(batch.bags(), plan);
  const std::vector<int> chosen = {2, 0};
  const SlotChoice choice{kSlots, chosen};
  const std::vector<float> rows = RandomFloats(plan.keys.size() * kWidth, 1);
  const int64_t stride = 2 * kWidth + 1;
  std::vector<float> out(kSamples * stride, 77.0f);
  GatherChosen(plan, pooling, {rows.data(), kWidth, kWidth}, choice, {out.data(), stride, 2});
  const std::vector<float> grads = RandomFloats(out.size(), 2);
  std::vector<float> merged(rows.size(), 55.0f);
  MergeChosen(plan, pooling, choice, {grads.data(), stride, 2}, Onto::kSet, {merged.data(), kWidth, kWidth});
  std::vector<float> twice = merged;
  MergeChosen(plan, pooling, choice, {grads.data(), stride, 2}, Onto::kAdd, {twice.data(), kWidth, kWidth});

  std::vector<double> want(rows.size());
  for (size_t s = 0; s < kSamples; ++s)
    for (size_t c = 0; c < 2; ++c) {
      const size_t bag = s * kSlots + static_cast<size_t>(chosen[c]);
      const double scale = ScaleOf(pooling, batch.offsets[bag + 1] - batch.offsets[bag]);
      for (size_t j = 0; j < kWidth; ++j) {
        const size_t at = s * stride + c * kWidth + j;
        double sum = 0;
        for (uint32_t p = batch.offsets[bag]; p < batch.offsets[bag + 1]; ++p) {
          sum += scale * batch.value(p) * rows[plan.row_of[p] * kWidth + j];
          want[plan.row_of[p] * kWidth + j] += scale * batch.value(p) * grads[at];
        }
        EXPECT_NEAR(out[at], sum, 1e-5);
      }
    }
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(merged[i], want[i], 2e-5);
    EXPECT_NEAR(twice[i], 2 * want[i], 4e-5);
  }
  for (size_t s = 0; s < kSamples; ++s) EXPECT_EQ(out[s * stride + 2 * kWidth], 77.0f) << "not ours";
}

INSTANTIATE_TEST_SUITE_P(Poolings, ChosenSlotsTest,
                         testing::Combine(testing::Values(Pooling::kSum, Pooling::kMean, Pooling::kSqrtN),
                                          testing::Bool()));

TEST(ChosenSlots, RowsWithoutPoolingComeInOrder) {
  for (const bool weighted : {false, true}) {
    const RandomBatch batch(weighted);
    KeyPlan plan;
    Planner().Plan(batch.bags(), plan);
    const std::vector<int> chosen = {3, 1};
    const SlotChoice choice{kSlots, chosen};
    const std::vector<float> rows = RandomFloats(plan.keys.size() * kWidth, 1);
    const auto ids = static_cast<size_t>(CountIds(plan, choice));
    std::vector<float> out(ids * kWidth);
    std::vector<int64_t> offsets(kSamples * 2 + 1);
    GatherRows(plan, {rows.data(), kWidth, kWidth}, choice, out.data(), offsets);
    const std::vector<float> grads = RandomFloats(out.size(), 2);
    std::vector<float> merged(rows.size(), 55.0f);
    MergeRows(plan, choice, grads.data(), Onto::kSet, {merged.data(), kWidth, kWidth});

    std::vector<double> want(rows.size());
    size_t at = 0;
    for (size_t s = 0; s < kSamples; ++s)
      for (size_t c = 0; c < 2; ++c) {
        const size_t bag = s * kSlots + static_cast<size_t>(chosen[c]);
        EXPECT_EQ(offsets[s * 2 + c], static_cast<int64_t>(at));
        for (uint32_t p = batch.offsets[bag]; p < batch.offsets[bag + 1]; ++p, ++at)
          for (size_t j = 0; j < kWidth; ++j) {
            EXPECT_NEAR(out[at * kWidth + j], batch.value(p) * rows[plan.row_of[p] * kWidth + j], 1e-6);
            want[plan.row_of[p] * kWidth + j] += batch.value(p) * grads[at * kWidth + j];
          }
      }
    EXPECT_EQ(at, ids);
    EXPECT_EQ(offsets.back(), static_cast<int64_t>(ids));
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(merged[i], want[i], 2e-5);
  }
}

TEST(BagSelection, GivesTheBagsOfTheChosenSlots) {
  const RandomBatch batch(true);
  BagSelection selection;
  const std::vector<int> chosen = {1, 3}, all = {0, 1, 2, 3};
  for (int round = 0; round < 2; ++round) {
    const Bags bags = selection.Select(batch.bags(), kSlots, chosen);
    ASSERT_EQ(bags.offsets.size(), kSamples * 2u + 1);
    for (size_t s = 0; s < kSamples; ++s)
      for (size_t c = 0; c < 2; ++c) {
        const size_t from = batch.offsets[s * kSlots + static_cast<size_t>(chosen[c])];
        const size_t to = bags.offsets[s * 2 + c], n = bags.offsets[s * 2 + c + 1] - to;
        ASSERT_EQ(n, batch.offsets[s * kSlots + static_cast<size_t>(chosen[c]) + 1] - from);
        for (size_t i = 0; i < n; ++i) {
          EXPECT_EQ(bags.keys[to + i], batch.keys[from + i]);
          EXPECT_EQ(bags.values[to + i], batch.values[from + i]);
        }
      }
  }
  EXPECT_EQ(selection.Select(batch.bags(), kSlots, all).keys.data(), batch.keys.data()) << "no copy";
}

}  // namespace
}  // namespace regatta::lookup
