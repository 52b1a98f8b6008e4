#include "table/gradient_sum.h"

#include <gtest/gtest.h>

#include <map>

#include "base/grouped_keys.h"
#include "base/random.h"

namespace regatta::table {
namespace {

TEST(GradientSum, IsTheSumInTheOrderGiven) {
  constexpr int kWidth = 5;
  base::Rng rng(3);
  GradientSum sums;
  for (int round = 0; round < 20; ++round) {
    std::vector<base::GroupedKeys> keys;
    std::vector<std::vector<float>> rows;
    const size_t pushes = 1 + rng.Below(4);
    for (size_t p = 0; p < pushes; ++p) {
      std::vector<base::Key> drawn(rng.Below(300));
      for (base::Key& key : drawn) key = rng.Below(200) * 0x9E3779B97F4A7C15;
      keys.emplace_back(std::move(drawn));
      rows.emplace_back(keys.back().size() * kWidth);
      for (float& value : rows.back()) value = static_cast<float>(rng.Uniform());
    }
    std::vector<base::TableGrads> views(pushes);
    std::map<base::Key, std::vector<float>> want;
    for (size_t p = 0; p < pushes; ++p) {
      views[p].keys = keys[p].view();
      views[p].grads = {rows[p].data(), kWidth, kWidth};
      for (size_t i = 0; i < keys[p].size(); ++i) {
        auto [it, fresh] = want.try_emplace(keys[p].keys()[i], kWidth, 0.0f);
        for (int j = 0; j < kWidth; ++j)
          it->second[j] = fresh ? rows[p][i * kWidth + j] : it->second[j] + rows[p][i * kWidth + j];
      }
    }
    const base::TableGrads got = sums.Sum(views);
    ASSERT_EQ(got.keys.keys.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const base::Key key = got.keys.keys[i];
      EXPECT_EQ(std::vector<float>(got.grads.row(i), got.grads.row(i) + kWidth), want.at(key));
      const uint32_t shard = base::ShardOf(key);
      EXPECT_GE(i, got.keys.shard_begin[shard]);
      EXPECT_LT(i, got.keys.shard_begin[shard + 1]);
    }
  }
}

}  // namespace
}  // namespace regatta::table
