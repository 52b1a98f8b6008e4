#include "metrics/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/random.h"
#include "metrics/counter.h"

namespace regatta::metrics {
namespace {

TEST(Histogram, BucketsHoldTheSortedValuesWithinASixteenth) {
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
  // Walking the buckets gives the sorted values back, each at most 1/16 larger.
  size_t rank = 0;
  for (int bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    const double most = static_cast<double>(Histogram::BucketMax(bucket));
    for (uint64_t i = 0; i < histogram.InBucket(bucket); ++i, ++rank) {
      ASSERT_LT(rank, values.size());
      const double exact = static_cast<double>(values[rank]);
      ASSERT_GE(most, exact) << rank;
      ASSERT_LE(most, exact * (1 + 1.0 / 16)) << rank;
    }
  }
  EXPECT_EQ(rank, values.size());
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
  for (int bucket = 0; bucket < Histogram::kBuckets; ++bucket)
    EXPECT_EQ(a.InBucket(bucket), whole.InBucket(bucket)) << bucket;
  EXPECT_EQ(a.mean(), whole.mean());
  EXPECT_EQ(a.min(), 0u);
}

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
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
