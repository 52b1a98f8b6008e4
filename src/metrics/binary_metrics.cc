#include "metrics/binary_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/multiversion.h"

namespace regatta::metrics {
namespace {

constexpr int kBlock = 256;
constexpr int kLanes = 8;
constexpr uint32_t kMagic = 0x324D4252;      // "RBM2"
constexpr uint32_t kEvenMagic = 0x314D4252;  // "RBM1": the AUC's buckets were of one width
// The resolution of a float below 1: the least probability that a float prediction can leave to a class.
constexpr float kLeastProbability = 0x1p-24f;

// A block's samples after clamping; arrays, so that the loops over them vectorise.
struct Block {
  alignas(64) std::array<float, kBlock> p;
  alignas(64) std::array<float, kBlock> y;
  alignas(64) std::array<float, kBlock> w;
  alignas(64) std::array<float, kBlock> likelihood;  // probability given to the sample's own class
  alignas(64) std::array<float, kBlock> tail;        // min(p, 1 − p)
  alignas(64) std::array<int32_t, kBlock> bucket;
  int invalid = 0;  // predictions
  int soft = 0;     // labels between 0 and 1
};

struct LaneSums {
  double weight[kLanes] = {}, clicks[kLanes] = {}, predicted[kLanes] = {}, absolute[kLanes] = {}, squared[kLanes] = {};
};

double Fold(const double (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Clamps n samples into `block` and pads it with weight 0 to a multiple of kLanes.
// One select a loop: two in a row are merged into branches, and then the loop does not vectorise.
REGATTA_MULTIVERSION void Prepare(const float* __restrict predictions, const float* __restrict labels,
                                  const float* __restrict weights, int n, Block& __restrict block) {
  for (int i = 0; i < n; ++i) block.p[i] = predictions[i] > 0.0f ? predictions[i] : 0.0f;  // NaN becomes 0
  for (int i = 0; i < n; ++i) block.p[i] = block.p[i] < 1.0f ? block.p[i] : 1.0f;
  int valid = 0, hard = 0;
  for (int i = 0; i < n; ++i) valid += block.p[i] == predictions[i];
  for (int i = 0; i < n; ++i) block.y[i] = labels[i];
  for (int i = 0; i < n; ++i) hard += labels[i] * labels[i] == labels[i];
  block.invalid = n - valid;
  block.soft = n - hard;
  for (int i = 0; i < n; ++i) {
    const float p = block.p[i], y = block.y[i];
    block.likelihood[i] = (1.0f - y) + (2.0f * y - 1.0f) * p;  // 1 − p or p, exactly, for a label of 0 or 1
    block.tail[i] = std::min(p, 1.0f - p);
  }
  for (int i = 0; i < n; ++i)
    block.likelihood[i] = block.likelihood[i] > kLeastProbability ? block.likelihood[i] : kLeastProbability;
  for (int i = 0; i < n; ++i) block.tail[i] = block.tail[i] > Auc::kLeast ? block.tail[i] : Auc::kLeast;
  for (int i = 0; i < n; ++i) block.bucket[i] = Auc::TailBucket(block.tail[i]);
  for (int i = 0; i < n; ++i)
    block.bucket[i] = block.p[i] < 0.5f ? block.bucket[i] : Auc::kBuckets - 1 - block.bucket[i];
  if (weights == nullptr) {
    for (int i = 0; i < n; ++i) block.w[i] = 1.0f;
  } else {
    for (int i = 0; i < n; ++i) block.w[i] = weights[i] > 0.0f ? weights[i] : 0.0f;
  }
  for (int i = n; i % kLanes != 0; ++i) block.p[i] = block.y[i] = block.w[i] = 0;
}

REGATTA_MULTIVERSION void SumBlock(const Block& block, int n, LaneSums& sums) {
  for (int i = 0; i < n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const double p = block.p[i + k], y = block.y[i + k], w = block.w[i + k];
      const double error = p - y;
      sums.weight[k] += w;
      sums.clicks[k] += w * y;
      sums.predicted[k] += w * p;
      sums.absolute[k] += w * std::abs(error);
      sums.squared[k] += w * error * error;
    }
  }
}

// Of labels that may lie between 0 and 1: the expected logarithm under the label.
double SumOfSoftLogs(const Block& block, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double p = block.p[i], y = block.y[i], least = kLeastProbability;
    sum += block.w[i] * (y * std::log(std::max(p, least)) + (1 - y) * std::log(std::max(1 - p, least)));
  }
  return sum;
}

// Σ log: the logarithm of a product of up to 32 factors, each at least 2^-24, so that it stays a normal double.
double SumOfLogs(const float* factors, int n) {
  constexpr int kFactors = 32;
  double sum = 0;
  for (int i = 0; i < n; i += kFactors) {
    const int end = std::min(n, i + kFactors);
    double even = 1, odd = 1;
    int k = i;
    for (; k + 1 < end; k += 2) {
      even *= factors[k];
      odd *= factors[k + 1];
    }
    if (k < end) even *= factors[k];
    sum += std::log(even * odd);
  }
  return sum;
}

}  // namespace

void BinaryMetrics::AddBlock(const float* predictions, const float* labels, const float* weights, const uint64_t* users,
                             int n) {
  Block block;
  Prepare(predictions, labels, weights, n, block);
  invalid_ += static_cast<uint64_t>(block.invalid);
  LaneSums lanes;
  SumBlock(block, n, lanes);
  sums_.weight += Fold(lanes.weight);
  sums_.clicks += Fold(lanes.clicks);
  sums_.predicted += Fold(lanes.predicted);
  sums_.absolute += Fold(lanes.absolute);
  sums_.squared += Fold(lanes.squared);
  if (block.soft > 0) {
    sums_.log_likelihood += SumOfSoftLogs(block, n);
  } else if (weights == nullptr) {
    sums_.log_likelihood += SumOfLogs(block.likelihood.data(), n);
  } else {
    for (int i = 0; i < n; ++i) sums_.log_likelihood += block.w[i] * std::log(double{block.likelihood[i]});
  }
  for (int i = 0; i < n; ++i) {
    const float positive = block.w[i] * block.y[i], negative = block.w[i] * (1.0f - block.y[i]);
    auc_.AddToBucket(block.bucket[i], negative, positive);
    if (users == nullptr) continue;
    users_.Add(users[i], block.p[i], UserAuc::Class::kPositive, positive);
    users_.Add(users[i], block.p[i], UserAuc::Class::kNegative, negative);
  }
  samples_ += static_cast<uint64_t>(n);
}

void BinaryMetrics::Add(std::span<const float> predictions, std::span<const float> labels,
                        std::span<const float> weights, std::span<const uint64_t> users) {
  for (size_t i = 0; i < predictions.size(); i += kBlock) {
    const int n = static_cast<int>(std::min<size_t>(kBlock, predictions.size() - i));
    AddBlock(predictions.data() + i, labels.data() + i, weights.empty() ? nullptr : weights.data() + i,
             users.empty() ? nullptr : users.data() + i, n);
  }
}

void BinaryMetrics::Merge(const BinaryMetrics& other) {
  samples_ += other.samples_;
  invalid_ += other.invalid_;
  sums_.weight += other.sums_.weight;
  sums_.clicks += other.sums_.clicks;
  sums_.predicted += other.sums_.predicted;
  sums_.absolute += other.sums_.absolute;
  sums_.squared += other.sums_.squared;
  sums_.log_likelihood += other.sums_.log_likelihood;
  auc_.Merge(other.auc_);
  users_.Merge(other.users_);
}

void BinaryMetrics::Clear() {
  samples_ = invalid_ = 0;
  sums_ = Sums{};
  auc_.Clear();
  users_.Clear();
}

BinaryReport BinaryMetrics::Report() const {
  BinaryReport report;
  report.samples = samples_;
  report.invalid = invalid_;
  report.weight = sums_.weight;
  report.auc = auc_.Value();
  report.by_user = users_.Compute();
  if (!(sums_.weight > 0)) return report;
  report.logloss = -sums_.log_likelihood / sums_.weight;
  report.mae = sums_.absolute / sums_.weight;
  report.rmse = std::sqrt(sums_.squared / sums_.weight);
  report.actual_ctr = sums_.clicks / sums_.weight;
  report.predicted_ctr = sums_.predicted / sums_.weight;
  if (report.predicted_ctr > 0) report.copc = report.actual_ctr / report.predicted_ctr;
  report.bucket_error = auc_.BucketError();
  return report;
}

std::string BinaryMetrics::Serialize() const {
  std::string out;
  PutBytes(out, kMagic);
  PutBytes(out, samples_);
  PutBytes(out, invalid_);
  PutBytes(out, sums_);
  auc_.AppendTo(out);
  users_.AppendTo(out);
  return out;
}

absl::StatusOr<BinaryMetrics> BinaryMetrics::Parse(std::string_view bytes) {
  ByteReader in(bytes);
  BinaryMetrics metrics;
  uint32_t magic = 0;
  RETURN_IF_ERROR(in.Get(magic));
  if (magic != kMagic && magic != kEvenMagic)
    return absl::DataLossError("metrics: not the bytes of metrics of this version");
  RETURN_IF_ERROR(in.Get(metrics.samples_));
  RETURN_IF_ERROR(in.Get(metrics.invalid_));
  RETURN_IF_ERROR(in.Get(metrics.sums_));
  RETURN_IF_ERROR(magic == kMagic ? metrics.auc_.ReadFrom(in) : metrics.auc_.ReadEvenFrom(in));
  RETURN_IF_ERROR(metrics.users_.ReadFrom(in));
  if (in.left() != 0) return absl::DataLossError(absl::StrCat("metrics: ", in.left(), " bytes too many"));
  return metrics;
}

}  // namespace regatta::metrics
