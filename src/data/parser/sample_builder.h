// Collects the parts of one sample in any order, then appends it to a block as the Schema wants it.
// Thread-safety: belongs to one parser.
// Invariant: nothing reaches the block before Finish returned OK.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/batch.h"
#include "data/parser/field_map.h"
#include "data/sample_block.h"

namespace regatta::data {

// The finite values that one label may have. From 0 to 1: a click or none, or the share of clicks in between; the loss
// and the metrics of a click model know no others.
struct LabelRange {
  float least = 0;
  float most = 1;
  bool Contains(float value) const { return value >= least && value <= most; }
};

// Of each label that is read.
inline std::vector<LabelRange> LabelRangesOf(const Schema& schema) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::vector<LabelRange> ranges;
  for (int i = 0; i < schema.label_dim(); ++i)
    ranges.push_back(schema.IsReal(schema.labels[static_cast<size_t>(i)]) ? LabelRange{-kMost, kMost} : LabelRange{});
  return ranges;
}

class SampleBuilder {
 public:
  explicit SampleBuilder(const Schema& schema);

  void Begin();
  // Takes `text` as a value of the field; an error says what was expected. `text` has kPadding readable bytes behind.
  absl::Status Add(FieldRef ref, std::string_view text);
  void AddKey(uint32_t slot, base::Key key) {
    ordered_ &= keys_.empty() || slot >= keys_.back().slot;
    keys_.push_back({slot, key});
  }
  void AddDense(float value) { dense_.push_back(value); }
  // Appends the sample, or says which part came in a wrong number.
  absl::Status Finish(SampleBlock& block);

 private:
  struct SlotKey {
    uint32_t slot;
    base::Key key;
  };
  absl::Status AddNumber(FieldRef ref, float value, std::string_view text);
  absl::Status CheckCounts() const;
  void AppendKeys(SampleBlock& block);

  // Constant after construction.
  const Schema schema_;
  const int slots_;
  const std::vector<LabelRange> label_ranges_;
  int user_slot_ = -1;  // the sparse slot that is the user too

  std::vector<SlotKey> keys_;
  bool ordered_ = true;  // keys_ ascend by slot
  std::vector<uint32_t> counts_;
  std::vector<float> labels_;  // of each label its last value
  std::vector<uint32_t> label_counts_;
  std::vector<float> dense_, weights_, values_;
  std::vector<uint64_t> users_;
};

}  // namespace regatta::data
