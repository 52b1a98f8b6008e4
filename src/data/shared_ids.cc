#include "data/shared_ids.h"

namespace regatta::data {

void SharedIds::Add(const Batch& batch) {
  for (size_t bag = 0; bag + 1 < batch.offsets.size(); ++bag) {
    const auto slot = static_cast<uint32_t>(bag % static_cast<size_t>(batch.slots));
    for (uint32_t at = batch.offsets[bag]; at < batch.offsets[bag + 1]; ++at) {
      const base::Key id = batch.keys[at];
      auto found = slot_of_.find(id);
      if (found == slot_of_.end()) {
        if (slot_of_.size() < kMost) slot_of_.emplace(id, slot);
      } else if (found->second != slot && shared_.insert(id).second && !example_.has_value()) {
        example_ = Example{id, found->second, slot};
      }
    }
  }
}

}  // namespace regatta::data
