#include "base/hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "base/key.h"
#include "base/random.h"

namespace regatta::base {
namespace {

TEST(Hash, ValuesNeverChange) {
  // splitmix64 from state 0 gives these numbers (Vigna's reference).
  EXPECT_EQ(Mix64(0), 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(Mix64(0x9E3779B97F4A7C15ULL), 0x6E789E6AA1B965F4ULL);
  static_assert(HashBytes("") == HashBytes(""));
  EXPECT_NE(HashBytes("a"), HashBytes("b"));
  EXPECT_NE(HashBytes("a", 1), HashBytes("a", 2));
  EXPECT_NE(Combine64(1, 2), Combine64(2, 1));
}

TEST(Key, ShardsAreEven) {
  std::vector<int> counts(kVirtualShards, 0);
  constexpr int kKeys = kVirtualShards * 1000;
  for (uint64_t key = 0; key < kKeys; ++key) {
    ASSERT_LT(ShardOf(key), static_cast<uint32_t>(kVirtualShards));
    ++counts[ShardOf(key)];
  }
  double chi2 = 0;
  for (const int count : counts) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
  // 1023 degrees of freedom: mean 1023, deviation 45.
  EXPECT_NEAR(chi2, 1023, 6 * 45);
  EXPECT_LT(ShardOf(~uint64_t{0}), static_cast<uint32_t>(kVirtualShards));
}

TEST(Random, AStreamIsAFunctionOfSeedAndIndex) {
  Rng a(7), b(7), c(8);
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a();
    EXPECT_EQ(value, b());
    EXPECT_NE(value, c());
    EXPECT_EQ(value, RandomBits(Mix64(7), static_cast<uint64_t>(i)));
  }
}

TEST(Random, MomentsAreThoseOfTheDistributions) {
  constexpr int kDraws = 200000;
  Rng rng(3);
  double sum = 0, square = 0, normal = 0, normal_square = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.Uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    square += u * u;
    const double z = RandomNormal(11, static_cast<uint64_t>(i));
    normal += z;
    normal_square += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(square / kDraws, 1.0 / 3, 0.005);
  EXPECT_NEAR(normal / kDraws, 0, 0.015);
  EXPECT_NEAR(normal_square / kDraws, 1, 0.02);
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  Rng rng(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = rng.Below(7);
    ASSERT_LT(value, 7u);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 7u);
}

}  // namespace
}  // namespace regatta::base
