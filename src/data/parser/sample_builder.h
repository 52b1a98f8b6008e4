// Collects the parts of one sample in any order, then appends it to a block as the Schema wants it.
// Thread-safety: belongs to one parser.
// Invariant: nothing reaches the block before Finish returned OK.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/batch.h"
#include "data/parser/field_map.h"
#include "data/sample_block.h"

namespace regatta::data {

// A click or none, or the share of clicks in between: the loss and the metrics of a CTR model know no others.
inline bool IsLabel(float value) { return value >= 0 && value <= 1; }

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
  absl::Status CheckCounts() const;
  void AppendKeys(SampleBlock& block);

  // Constant after construction.
  const Schema schema_;
  const int slots_;
  int user_slot_ = -1;  // the sparse slot that is the user too

  std::vector<SlotKey> keys_;
  bool ordered_ = true;  // keys_ ascend by slot
  std::vector<uint32_t> counts_;
  std::vector<float> labels_, dense_, weights_, values_;
  std::vector<uint64_t> users_;
};

}  // namespace regatta::data
