#include "lookup/bag_selection.h"

namespace regatta::lookup {

Bags BagSelection::Select(const Bags& all, int slots, std::span<const int> chosen) {
  if (chosen.size() == static_cast<size_t>(slots)) return all;
  keys_.clear();
  offsets_.assign(1, 0);
  values_.clear();
  const size_t samples = (all.offsets.size() - 1) / static_cast<size_t>(slots);
  for (size_t sample = 0; sample < samples; ++sample) {
    for (const int slot : chosen) {
      const size_t bag = sample * static_cast<size_t>(slots) + static_cast<size_t>(slot);
      const auto begin = all.offsets[bag], end = all.offsets[bag + 1];
      keys_.insert(keys_.end(), all.keys.begin() + begin, all.keys.begin() + end);
      if (!all.values.empty()) values_.insert(values_.end(), all.values.begin() + begin, all.values.begin() + end);
      offsets_.push_back(static_cast<uint32_t>(keys_.size()));
    }
  }
  return {keys_, offsets_, values_};
}

}  // namespace regatta::lookup
