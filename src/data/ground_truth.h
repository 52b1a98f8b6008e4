// A made-up world of clicks, Criteo-shaped: 13 dense features, 26 slots of zipf ids, and the true probability of a
// click as a logistic function of them with a linear part, dense effects and low-rank crosses of pairs of slots.
// Sample i is a pure function of (options, i).
// Thread-safety: constant after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace regatta::data {

struct TruthOptions {
  uint64_t seed = 1;
  int slots = 26;
  int dense = 13;        // 0 or 13
  uint64_t ids = 100;    // of the largest slot; slots have from 10 to that many, geometrically
  int ids_per_slot = 1;  // of a sample
  double zipf = 1.05;    // exponent of the ids' frequencies
  double missing = 0;    // share of (sample, slot) without an id
  double click_rate = 0.25;
  double signal = 1.4;       // standard deviation of the logit: how much there is to learn
  double dense_share = 0.1;  // of the logit's variance
  double cross_share = 0.03;
};

struct TrueSample {
  std::vector<uint16_t> dense;  // quantile of each feature
  std::vector<uint64_t> ids;    // ids_per_slot a slot; kMissing where the slot is missing
  double probability = 0;
  bool click = false;

  static constexpr uint64_t kMissing = UINT64_MAX;
};

class GroundTruth {
 public:
  static absl::StatusOr<GroundTruth> Make(const TruthOptions& options);

  void Draw(uint64_t index, TrueSample* sample) const;

  static constexpr int kQuantiles = 4096;
  // The raw integer of a dense feature, and its normalised value.
  int64_t Raw(int feature, uint16_t quantile) const { return features_[feature].raw[quantile]; }
  double Normalised(int feature, uint16_t quantile) const;

 private:
  struct Feature {
    std::vector<int64_t> raw;
    std::vector<double> effect;
  };
  struct Slot {
    uint64_t vocabulary = 0;
    uint64_t first_id = 0;
    uint64_t stride = 1;             // coprime to the vocabulary: scatters ranks over ids
    std::vector<double> cumulative;  // of the ranks' frequencies
    std::vector<uint32_t> guide;     // first rank that a bucket of the unit interval may hold
    std::vector<float> weight;       // of a rank
    std::vector<float> cross;        // kCrossRank factors of a rank, empty where the slot is in no cross
  };
  struct Parts {
    double linear = 0, dense = 0, cross = 0;
  };
  static constexpr int kCrossRank = 2;
  static constexpr int kCrossPairs = 2;
  static constexpr int kGuide = 1 << 14;

  explicit GroundTruth(const TruthOptions& options) : options_(options) {}
  void MakeFeatures();
  void MakeSlots();
  void Calibrate();
  uint32_t DrawRank(const Slot& slot, uint64_t bits) const;
  Parts DrawParts(uint64_t index, TrueSample* sample) const;

  TruthOptions options_;
  std::vector<Feature> features_;
  std::vector<Slot> slots_;
  double linear_scale_ = 1, dense_scale_ = 1, cross_scale_ = 1, bias_ = 0;
};

}  // namespace regatta::data
