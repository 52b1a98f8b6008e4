#include "metrics/binary_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "metrics/byte_codec.h"

namespace regatta::metrics {
namespace {

struct Samples {
  std::vector<float> p, y, w;
  std::vector<uint64_t> user;
};

Samples Draw(int n, uint64_t seed) {
  base::Rng rng(seed);
  Samples s;
  for (int i = 0; i < n; ++i) {
    const double p = 0.02 + 0.5 * rng.Uniform() * rng.Uniform();
    s.p.push_back(static_cast<float>(p));
    s.y.push_back(rng.Uniform() < 1.3 * p ? 1.0f : 0.0f);
    s.w.push_back(static_cast<float>(0.25 + rng.Uniform()));
    s.user.push_back(rng.Below(40));
  }
  return s;
}

// AUC by counting pairs of sorted predictions: the definition, not the histogram.
double ExactAuc(const std::vector<float>& p, const std::vector<float>& y, const std::vector<float>& w) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  double below = 0, area = 0, pos = 0, neg = 0;
  for (size_t i = 0; i < order.size();) {
    double tie_pos = 0, tie_neg = 0;
    const float at = p[order[i]];
    for (; i < order.size() && p[order[i]] == at; ++i) (y[order[i]] > 0.5f ? tie_pos : tie_neg) += w[order[i]];
    area += tie_pos * (below + tie_neg / 2);
    below += tie_neg;
    pos += tie_pos;
    neg += tie_neg;
  }
  return area / (pos * neg);
}

// What the histogram may differ by: half the weight of pairs that share a bucket.
double BucketBound(const Samples& s, const std::vector<float>& w) {
  std::map<int, std::pair<double, double>> buckets;
  double pos = 0, neg = 0;
  for (size_t i = 0; i < s.p.size(); ++i) {
    auto& bucket = buckets[Auc::Bucket(s.p[i])];
    (s.y[i] > 0.5f ? bucket.first : bucket.second) += w[i];
    (s.y[i] > 0.5f ? pos : neg) += w[i];
  }
  double shared = 0;
  for (const auto& [b, weights] : buckets) shared += weights.first * weights.second;
  return 0.5 * shared / (pos * neg) + 1e-12;
}

TEST(BinaryMetrics, AucIsTheSortBasedOneWithinTheBucketBound) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Samples s = Draw(20000, seed);
    const std::vector<float> ones(s.p.size(), 1.0f);
    BinaryMetrics plain, weighted;
    plain.Add(s.p, s.y);
    weighted.Add(s.p, s.y, s.w);
    ASSERT_TRUE(plain.AucValue().has_value());
    EXPECT_NEAR(*plain.AucValue(), ExactAuc(s.p, s.y, ones), BucketBound(s, ones));
    EXPECT_NEAR(*weighted.AucValue(), ExactAuc(s.p, s.y, s.w), BucketBound(s, s.w));
    EXPECT_LT(BucketBound(s, ones), 1e-4);
    EXPECT_GT(*plain.AucValue(), 0.6);
  }
}

// Predictions around a click rate, spread by `spread` in the logit; 5 % of the samples are clicks, drawn in proportion
// to the prediction (of a rate above ½: the others, to what is left to 1).
Samples DrawAround(double rate, double spread, uint64_t seed) {
  base::Rng rng(seed);
  Samples s;
  for (int i = 0; i < 100'000; ++i) {
    const double normal = std::sqrt(-2 * std::log1p(-rng.Uniform())) * std::cos(2 * M_PI * rng.Uniform());
    const double tail = std::min(rate, 1 - rate);
    const double relative = std::exp(spread * normal);
    const bool drawn = rng.Uniform() < 0.05 * relative;
    const double odds = tail / (1 - tail) * relative, p = odds / (1 + odds);
    s.p.push_back(static_cast<float>(rate < 0.5 ? p : 1 - p));
    s.y.push_back(drawn == (rate < 0.5) ? 1.0f : 0.0f);
  }
  return s;
}

TEST(BinaryMetrics, AucIsTheExactOneAtAnyClickRate) {
  uint64_t seed = 100;
  for (const double rate : {0.5, 0.05, 5e-4, 1e-6, 1e-9, 0.95, 0.9995, 0.99999}) {
    for (const double spread : {1.5, 0.3, 0.02}) {
      const Samples s = DrawAround(rate, spread, ++seed);
      BinaryMetrics metrics;
      metrics.Add(s.p, s.y);
      const double exact = ExactAuc(s.p, s.y, std::vector<float>(s.p.size(), 1.0f));
      EXPECT_NEAR(metrics.AucValue().value(), exact, 1e-4) << "click rate " << rate << ", spread " << spread;
    }
  }
}

TEST(BinaryMetrics, BucketsAscendWithThePrediction) {
  int last = -1;
  for (const float p : {0.0f, 1e-30f, 1e-9f, 1e-4f, 0.25f, 0.49f, std::nextafter(0.5f, 0.0f), 0.5f,
                        std::nextafter(0.5f, 1.0f), 0.51f, 0.75f, 0.9999f, std::nextafter(1.0f, 0.0f), 1.0f}) {
    const int bucket = Auc::Bucket(p);
    EXPECT_GE(bucket, last) << p;
    EXPECT_LT(bucket, Auc::kBuckets);
    last = bucket;
  }
  EXPECT_EQ(Auc::Bucket(0.0f), 0);
  EXPECT_EQ(Auc::Bucket(1.0f), Auc::kBuckets - 1);
  EXPECT_NE(Auc::Bucket(5e-4f), Auc::Bucket(5.001e-4f));
}

// Every mean by its definition; labels may be soft.
void ExpectMeans(const Samples& s, bool weighted, const BinaryReport& report) {
  double weight = 0, logloss = 0, mae = 0, mse = 0, clicks = 0, predicted = 0;
  for (size_t i = 0; i < s.p.size(); ++i) {
    const double w = weighted ? s.w[i] : 1, p = s.p[i], y = s.y[i];
    weight += w;
    logloss -= w * (y * std::log(p) + (1 - y) * std::log1p(-p));
    mae += w * std::abs(p - y);
    mse += w * (p - y) * (p - y);
    clicks += w * y;
    predicted += w * p;
  }
  EXPECT_EQ(report.samples, s.p.size());
  EXPECT_NEAR(report.weight, weight, 1e-9 * weight);
  EXPECT_NEAR(report.logloss, logloss / weight, 1e-6);
  EXPECT_NEAR(report.mae, mae / weight, 1e-10);
  EXPECT_NEAR(report.rmse, std::sqrt(mse / weight), 1e-10);
  EXPECT_NEAR(report.actual_ctr, clicks / weight, 1e-10);
  EXPECT_NEAR(report.predicted_ctr, predicted / weight, 1e-10);
  EXPECT_NEAR(report.copc.value(), clicks / predicted, 1e-10);
  EXPECT_EQ(report.invalid, 0u);
}

TEST(BinaryMetrics, SoftLabelsCountAsTheyAre) {
  Samples s = Draw(3001, 31);
  base::Rng rng(37);
  for (float& y : s.y) y = rng.Uniform() < 0.2 ? y : static_cast<float>(rng.Uniform());
  for (const bool weighted : {false, true}) {
    BinaryMetrics metrics;
    metrics.Add(s.p, s.y, weighted ? std::span<const float>(s.w) : std::span<const float>(), s.user);
    const BinaryReport report = metrics.Report();
    ExpectMeans(s, weighted, report);
    // In an AUC a soft sample is two hard ones.
    Samples hard;
    for (size_t i = 0; i < s.p.size(); ++i) {
      const double w = weighted ? s.w[i] : 1;
      for (const bool click : {false, true}) {
        hard.p.push_back(s.p[i]), hard.y.push_back(click ? 1.0f : 0.0f);
        hard.w.push_back(static_cast<float>(w * (click ? s.y[i] : 1 - s.y[i]))), hard.user.push_back(s.user[i]);
      }
    }
    EXPECT_NEAR(report.auc.value(), ExactAuc(hard.p, hard.y, hard.w), 1e-4);
    BinaryMetrics expanded;
    expanded.Add(hard.p, hard.y, hard.w, hard.user);
    EXPECT_NEAR(report.by_user.value().wuauc, expanded.Report().by_user->wuauc, 1e-6);
  }
}

TEST(BinaryMetrics, TiesCountHalfAndPerfectOrderIsOne) {
  BinaryMetrics ties, perfect, reversed;
  const std::vector<float> same = {0.5f, 0.5f}, rising = {0.1f, 0.9f}, y = {0, 1}, swapped = {1, 0};
  ties.Add(same, y);
  perfect.Add(rising, y);
  reversed.Add(rising, swapped);
  EXPECT_EQ(ties.AucValue(), 0.5);
  EXPECT_EQ(perfect.AucValue(), 1.0);
  EXPECT_EQ(reversed.AucValue(), 0.0);
}

TEST(BinaryMetrics, AucIsUndefinedWhileAClassIsMissing) {
  BinaryMetrics metrics;
  EXPECT_FALSE(metrics.Report().auc.has_value());
  const std::vector<float> p = {0.1f, 0.2f}, zeros = {0, 0}, ones = {1, 1};
  metrics.Add(p, zeros);
  EXPECT_FALSE(metrics.Report().auc.has_value());
  metrics.Add(p, ones);
  EXPECT_TRUE(metrics.Report().auc.has_value());
}

TEST(BinaryMetrics, MeansAreTheirDefinitions) {
  const Samples s = Draw(3001, 7);
  for (const bool weighted : {false, true}) {
    BinaryMetrics metrics;
    metrics.Add(s.p, s.y, weighted ? std::span<const float>(s.w) : std::span<const float>());
    ExpectMeans(s, weighted, metrics.Report());
  }
}

TEST(BinaryMetrics, CertainButWrongPredictionsKeepTheLoglossFinite) {
  BinaryMetrics metrics;
  const std::vector<float> p(1000, 0.0f), y(1000, 1.0f);
  metrics.Add(p, y);
  EXPECT_NEAR(metrics.Report().logloss, 24 * std::log(2.0), 1e-6);
}

TEST(BinaryMetrics, NanAndOutOfRangePredictionsAreCountedAndClamped) {
  BinaryMetrics metrics;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> p = {nan, -1, 2, inf, -inf, 0.5f}, y = {0, 0, 1, 1, 0, 1};
  const std::vector<uint64_t> users(6, 1);
  metrics.Add(p, y, {}, users);
  const BinaryReport report = metrics.Report();
  EXPECT_EQ(report.invalid, 5u);
  EXPECT_EQ(report.auc, 1.0);
  EXPECT_EQ(report.by_user->wuauc, 1.0);
  EXPECT_TRUE(std::isfinite(report.logloss));
  EXPECT_TRUE(std::isfinite(report.rmse));
}

// The definition of 05-tables' bucket_error, over all buckets in one loop of groups.
double ReferenceBucketError(const Samples& s) {
  std::map<int, std::pair<double, double>> buckets;  // shows, clicks
  for (size_t i = 0; i < s.p.size(); ++i) {
    auto& bucket = buckets[static_cast<int>(s.p[i] * 65536)];
    bucket.first += 1;
    bucket.second += s.y[i];
  }
  double last = -1, shows = 0, ctr_sum = 0, clicks = 0, error = 0, count = 0;
  for (int b = 0; b < 65536; ++b) {
    const double ctr = b / 65536.0;
    if (std::abs(ctr - last) > 0.01) {
      last = ctr;
      shows = ctr_sum = clicks = 0;
    }
    const auto it = buckets.find(b);
    if (it == buckets.end()) continue;
    shows += it->second.first;
    ctr_sum += ctr * it->second.first;
    clicks += it->second.second;
    const double mean = ctr_sum / shows;
    if (std::sqrt((1 - mean) / (mean * shows)) < 0.05) {
      error += std::abs(clicks / shows / mean - 1) * shows;
      count += shows;
      last = -1;
    }
  }
  return error / count;
}

TEST(BinaryMetrics, BucketErrorShowsMiscalibration) {
  const Samples s = Draw(200000, 11);  // drawn to be 1.3 times too clicky
  BinaryMetrics metrics;
  metrics.Add(s.p, s.y);
  EXPECT_NEAR(metrics.Report().bucket_error, ReferenceBucketError(s), 1e-9);
  EXPECT_NEAR(metrics.Report().bucket_error, 0.3, 0.03);
}

TEST(BinaryMetrics, WuaucIsTheUsersAucsByWeight) {
  const Samples s = Draw(5000, 13);
  BinaryMetrics metrics;
  metrics.Add(s.p, s.y, s.w, s.user);
  std::map<uint64_t, Samples> users;
  for (size_t i = 0; i < s.p.size(); ++i) {
    Samples& u = users[s.user[i]];
    u.p.push_back(s.p[i]), u.y.push_back(s.y[i]), u.w.push_back(s.w[i]);
  }
  double sum = 0, weight = 0, plain = 0;
  for (const auto& [id, u] : users) {
    const double auc = ExactAuc(u.p, u.y, u.w), w = std::accumulate(u.w.begin(), u.w.end(), 0.0);
    sum += auc * w;
    weight += w;
    plain += auc;
  }
  const BinaryReport report = metrics.Report();
  ASSERT_TRUE(report.by_user.has_value());
  EXPECT_EQ(report.by_user->users, 40u);
  EXPECT_NEAR(report.by_user->wuauc, sum / weight, 1e-9);
  EXPECT_NEAR(report.by_user->uauc, plain / 40, 1e-9);
}

TEST(BinaryMetrics, UsersWithOneClassOnlyAreLeftOut) {
  BinaryMetrics metrics;
  const std::vector<float> p = {0.1f, 0.9f, 0.4f, 0.6f}, y = {0, 1, 1, 1};
  const std::vector<uint64_t> users = {1, 1, 2, 2};
  metrics.Add(p, y, {}, users);
  EXPECT_EQ(metrics.Report().by_user->users, 1u);
  EXPECT_EQ(metrics.Report().by_user->wuauc, 1.0);
}

TEST(BinaryMetrics, PartsMergeToTheWhole) {
  const Samples s = Draw(4096, 17);
  BinaryMetrics whole, left, right;
  whole.Add(s.p, s.y, {}, s.user);
  const std::span<const float> p(s.p), y(s.y);
  const std::span<const uint64_t> u(s.user);
  right.Add(p.subspan(1000), y.subspan(1000), {}, u.subspan(1000));
  left.Add(p.first(1000), y.first(1000), {}, u.first(1000));
  left.Merge(right);
  const BinaryReport a = whole.Report(), b = left.Report();
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.auc, b.auc);  // counts of ones add up exactly
  EXPECT_EQ(a.bucket_error, b.bucket_error);
  EXPECT_EQ(a.by_user->wuauc, b.by_user->wuauc);
  EXPECT_NEAR(a.logloss, b.logloss, 1e-12);
  EXPECT_NEAR(a.rmse, b.rmse, 1e-12);
}

TEST(BinaryMetrics, ParsedMetricsGoOnBitForBit) {
  const Samples s = Draw(5000, 19), more = Draw(777, 23);
  BinaryMetrics straight;
  straight.Add(s.p, s.y, s.w, s.user);
  auto resumed = BinaryMetrics::Parse(straight.Serialize());
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  straight.Add(more.p, more.y, more.w, more.user);
  resumed->Add(more.p, more.y, more.w, more.user);
  EXPECT_EQ(straight.Serialize(), resumed->Serialize());
}

// What builds before had in their saves: "RBM1", and an AUC of 2^16 buckets of one width.
TEST(BinaryMetrics, MetricsOfEarlierBuildsAreRead) {
  std::string bytes;
  PutBytes(bytes, uint32_t{0x314D4252});
  PutBytes(bytes, uint64_t{5});  // samples
  PutBytes(bytes, uint64_t{0});  // invalid
  for (const double sum : {5.0, 2.0, 1.5, 2.5, 1.25, -2.5}) PutBytes(bytes, sum);
  PutBytes(bytes, uint32_t{3});
  for (const uint32_t bucket : {6553u, 32768u, 65535u}) {
    PutBytes(bytes, bucket);
    PutBytes(bytes, 1.0);                           // negatives
    PutBytes(bytes, bucket == 32768u ? 2.0 : 0.0);  // positives
  }
  PutBytes(bytes, uint64_t{0});  // users
  auto metrics = BinaryMetrics::Parse(bytes);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->AucValue(), 0.5);
  EXPECT_EQ(metrics->Report().logloss, 0.5);
  const std::vector<float> p = {0.9f, 0.05f}, y = {1.0f, 0.0f};
  metrics->Add(p, y);
  EXPECT_NEAR(metrics->AucValue().value(), (2 * 2.5 + 3) / (3 * 4), 1e-12);
  EXPECT_FALSE(BinaryMetrics::Parse(bytes.substr(0, bytes.size() - 1)).ok());
}

TEST(BinaryMetrics, CountsTakeFewBytes) {
  const Samples s = Draw(200'000, 41);
  BinaryMetrics metrics;
  metrics.Add(s.p, s.y);
  EXPECT_LT(metrics.Serialize().size(), 400'000u);
}

TEST(BinaryMetrics, DamagedBytesAreRefused) {
  const Samples s = Draw(50, 29);
  BinaryMetrics metrics;
  metrics.Add(s.p, s.y, s.w, s.user);
  const std::string bytes = metrics.Serialize();
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(BinaryMetrics::Parse(bytes.substr(0, cut)).ok()) << cut;
  EXPECT_FALSE(BinaryMetrics::Parse(bytes + "x").ok());
  EXPECT_FALSE(BinaryMetrics::Parse("garbage bytes").ok());
}

}  // namespace
}  // namespace regatta::metrics
