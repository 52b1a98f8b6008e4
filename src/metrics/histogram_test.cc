#include "metrics/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "base/random.h"
#include "metrics/counter.h"

namespace regatta::metrics {
namespace {

TEST(Histogram, PercentilesAreWithinABucketOfTheSortedOnes) {
  base::Rng rng(5);
  Histogram histogram;
  std::vector<uint64_t> values;
  uint64_t sum = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t value = rng() >> (rng.Below(64));
    values.push_back(value % (uint64_t{1} << 40));
    histogram.Record(values.back());
    sum += values.back();
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.sum(), sum);
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
  for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 1.0}) {
    const size_t rank = std::max<size_t>(1, static_cast<size_t>(std::ceil(q * values.size())));
    const double exact = static_cast<double>(values[rank - 1]);
    EXPECT_GE(histogram.Percentile(q), exact) << q;
    EXPECT_LE(histogram.Percentile(q), exact * (1 + 1.0 / 16) + 1) << q;
  }
}

TEST(Histogram, EveryValueFallsInABucketThatHoldsIt) {
  for (const uint64_t value :
       std::vector<uint64_t>{0, 1, 15, 16, 17, 31, 32, 33, 1000, 1u << 31, uint64_t{1} << 63, ~uint64_t{0}}) {
    const int bucket = Histogram::BucketOf(value);
    ASSERT_LT(bucket, Histogram::kBuckets);
    EXPECT_LE(value, Histogram::BucketMax(bucket));
    EXPECT_TRUE(bucket == 0 || value > Histogram::BucketMax(bucket - 1)) << value;
  }
}

TEST(Histogram, PartsMergeToTheWhole) {
  Histogram a, b, whole;
  for (uint64_t i = 0; i < 1000; ++i) {
    (i % 3 ? a : b).Record(i * i);
    whole.Record(i * i);
  }
  a.Merge(b);
  for (const double q : {0.1, 0.5, 0.99}) EXPECT_EQ(a.Percentile(q), whole.Percentile(q));
  EXPECT_EQ(a.mean(), whole.mean());
  EXPECT_EQ(a.min(), 0u);
}

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Percentile(0.5), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, ThreadsLoseNothing) {
  Histogram histogram;
  Counter counter;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 10000; ++i) {
        histogram.Record(t * 10000 + i);
        counter.Add(2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.count(), 40000u);
  EXPECT_EQ(histogram.max(), 39999u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(counter.value(), 80000u);
}

}  // namespace
}  // namespace regatta::metrics
