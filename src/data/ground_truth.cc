#include "data/ground_truth.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/random.h"
#include "data/parser/criteo_tsv.h"

namespace regatta::data {
namespace {

constexpr uint64_t kPilotSamples = 20'000;
constexpr uint64_t kPilotStream = uint64_t{1} << 60;  // no sample of a file has such an index
constexpr uint64_t kSmallestVocabulary = 10;
constexpr uint64_t kIdSpacing = 40'000;  // 26 slots of up to so many ids have ids up to a million, as Criteo's samples

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Deviation(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / n);
}

}  // namespace

absl::StatusOr<GroundTruth> GroundTruth::Make(const TruthOptions& options) {
  auto wrong = [](std::string_view what) { return absl::InvalidArgumentError(base::View(what)); };
  if (options.slots < 1 || options.slots > 10'000) return wrong("--slots must be 1 to 10000");
  if (options.dense != 0 && options.dense != kCriteoDense) return wrong("--dense must be 0 or 13");
  if (options.ids < 1 || options.ids > 100'000'000) return wrong("--ids must be 1 to 100000000");
  if (options.ids_per_slot < 1 || options.ids_per_slot > 10'000) return wrong("--ids-per-slot must be 1 to 10000");
  if (!(options.click_rate > 0.001 && options.click_rate < 0.999)) return wrong("--click-rate must be 0.001 to 0.999");
  if (!(options.missing >= 0 && options.missing < 1)) return wrong("--missing must be from 0 to below 1");
  if (!(options.signal >= 0 && options.signal <= 20)) return wrong("--signal must be 0 to 20");
  if (!(options.zipf >= 0 && options.zipf <= 10)) return wrong("--zipf must be 0 to 10");
  if (!(options.dense_share >= 0 && options.cross_share >= 0 && options.dense_share + options.cross_share <= 1))
    return wrong("--dense-share and --cross-share must be from 0 and at most 1 together");
  GroundTruth truth(options);
  truth.MakeFeatures();
  truth.MakeSlots();
  truth.Calibrate();
  return truth;
}

double GroundTruth::Normalised(int feature, uint16_t quantile) const {
  return (static_cast<double>(Raw(feature, quantile)) - kCriteoMin[feature]) / kCriteoDiff[feature];
}

// Log-normal counts around half of the feature's range, and an effect that saturates: what a small net can learn.
void GroundTruth::MakeFeatures() {
  features_.resize(static_cast<size_t>(options_.dense));
  for (size_t j = 0; j < features_.size(); ++j) {
    const uint64_t seed = base::Combine64(options_.seed, 1000 + j);
    std::vector<double> normals(kQuantiles);
    for (size_t q = 0; q < kQuantiles; ++q) normals[q] = base::RandomNormal(seed, q);
    std::sort(normals.begin(), normals.end());
    const double slope = base::RandomNormal(base::Combine64(options_.seed, 2000 + j), 0);
    for (double normal : normals) {
      const double value = 0.5 * kCriteoDiff[j] * std::exp(0.8 * normal) + kCriteoMin[j];
      features_[j].raw.push_back(static_cast<int64_t>(std::floor(value)));
      features_[j].effect.push_back(slope * std::tanh((value - kCriteoMin[j]) / kCriteoDiff[j]));
    }
  }
}

void GroundTruth::MakeSlots() {
  const uint64_t spacing = std::max(kIdSpacing, options_.ids);
  slots_.resize(static_cast<size_t>(options_.slots));
  for (size_t s = 0; s < slots_.size(); ++s) {
    Slot& slot = slots_[s];
    // The first slots are small: they carry the crosses, which must be seen often to be learnt.
    const double share = slots_.size() == 1 ? 1 : static_cast<double>(s) / static_cast<double>(slots_.size() - 1);
    const double smallest = static_cast<double>(std::min(kSmallestVocabulary, options_.ids));
    slot.vocabulary =
        static_cast<uint64_t>(std::llround(smallest * std::pow(static_cast<double>(options_.ids) / smallest, share)));
    slot.first_id = s * spacing + 1;
    slot.stride = slot.vocabulary / 2 + 1;
    while (std::gcd(slot.stride, slot.vocabulary) != 1) ++slot.stride;
    double total = 0;
    for (uint64_t rank = 0; rank < slot.vocabulary; ++rank)
      slot.cumulative.push_back(total += std::pow(static_cast<double>(rank + 1), -options_.zipf));
    for (double& c : slot.cumulative) c /= total;
    for (int g = 0; g < kGuide; ++g)
      slot.guide.push_back(static_cast<uint32_t>(
          std::lower_bound(slot.cumulative.begin(), slot.cumulative.end(), static_cast<double>(g) / kGuide) -
          slot.cumulative.begin()));
    const uint64_t weight_seed = base::Combine64(options_.seed, 3000 + s);
    const uint64_t cross_seed = base::Combine64(options_.seed, 13'000 + s);
    for (uint64_t rank = 0; rank < slot.vocabulary; ++rank)
      slot.weight.push_back(static_cast<float>(base::RandomNormal(weight_seed, rank)));
    if (s >= 2 * kCrossPairs) continue;
    for (uint64_t i = 0; i < slot.vocabulary * kCrossRank; ++i)
      slot.cross.push_back(static_cast<float>(base::RandomNormal(cross_seed, i)));
  }
}

uint32_t GroundTruth::DrawRank(const Slot& slot, uint64_t bits) const {
  const double u = base::UniformDouble(bits);
  uint32_t rank = slot.guide[static_cast<size_t>(u * kGuide)];
  while (rank + 1 < slot.vocabulary && slot.cumulative[rank] <= u) ++rank;
  return rank;
}

GroundTruth::Parts GroundTruth::DrawParts(uint64_t index, TrueSample* sample) const {
  const uint64_t stream = base::Combine64(options_.seed, index);
  uint64_t draw = 1;  // 0 is the click's
  Parts parts;
  sample->dense.resize(features_.size());
  for (size_t j = 0; j < features_.size(); ++j) {
    sample->dense[j] = static_cast<uint16_t>(base::RandomBits(stream, draw++) % kQuantiles);
    parts.dense += features_[j].effect[sample->dense[j]];
  }
  const size_t hot = static_cast<size_t>(options_.ids_per_slot);
  sample->ids.resize(slots_.size() * hot);
  const float* left = nullptr;
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = slots_[s];
    const bool missing =
        options_.missing > 0 && base::UniformDouble(base::RandomBits(stream, draw++)) < options_.missing;
    double weight = 0;
    uint32_t first_rank = 0;
    for (size_t h = 0; h < hot; ++h) {
      const uint32_t rank = DrawRank(slot, base::RandomBits(stream, draw++));
      if (h == 0) first_rank = rank;
      weight += slot.weight[rank];
      sample->ids[s * hot + h] = missing ? TrueSample::kMissing : slot.first_id + rank * slot.stride % slot.vocabulary;
    }
    if (!missing) parts.linear += weight / std::sqrt(static_cast<double>(hot));
    const float* const factors = slot.cross.empty() || missing ? nullptr : &slot.cross[first_rank * kCrossRank];
    if (s % 2 == 1 && left != nullptr && factors != nullptr)
      for (int k = 0; k < kCrossRank; ++k) parts.cross += left[k] * factors[k];
    left = s % 2 == 0 ? factors : nullptr;
  }
  return parts;
}

// Scales the parts to their shares of the logit's variance and finds the bias of the click rate, on samples of its own.
void GroundTruth::Calibrate() {
  TrueSample sample;
  std::vector<double> linear, dense, cross, logits;
  for (uint64_t i = 0; i < kPilotSamples; ++i) {
    const Parts parts = DrawParts(kPilotStream + i, &sample);
    linear.push_back(parts.linear), dense.push_back(parts.dense), cross.push_back(parts.cross);
  }
  auto scale = [this](double share, const std::vector<double>& values) {
    const double deviation = Deviation(values);
    return deviation > 0 ? options_.signal * std::sqrt(share) / deviation : 0;
  };
  linear_scale_ = scale(1 - options_.dense_share - options_.cross_share, linear);
  dense_scale_ = scale(options_.dense_share, dense);
  cross_scale_ = scale(options_.cross_share, cross);
  for (size_t i = 0; i < linear.size(); ++i)
    logits.push_back(linear_scale_ * linear[i] + dense_scale_ * dense[i] + cross_scale_ * cross[i]);
  double low = -60, high = 60;
  for (int step = 0; step < 60; ++step) {
    bias_ = (low + high) / 2;
    double clicks = 0;
    for (double logit : logits) clicks += Sigmoid(logit + bias_);
    (clicks / static_cast<double>(logits.size()) < options_.click_rate ? low : high) = bias_;
  }
}

void GroundTruth::Draw(uint64_t index, TrueSample* sample) const {
  const Parts parts = DrawParts(index, sample);
  sample->probability =
      Sigmoid(linear_scale_ * parts.linear + dense_scale_ * parts.dense + cross_scale_ * parts.cross + bias_);
  sample->click = base::UniformDouble(base::RandomBits(base::Combine64(options_.seed, index), 0)) < sample->probability;
}

}  // namespace regatta::data
