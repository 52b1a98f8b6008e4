// Ids that occur in more than one sparse slot. Looks at the first kMost distinct ids: its memory is bounded.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "data/batch.h"

namespace regatta::data {

class SharedIds {
 public:
  static constexpr size_t kMost = 1 << 20;

  struct Example {
    base::Key id = 0;
    uint32_t first_slot = 0, second_slot = 0;  // indices of the schema
  };

  // Batches of base::IdSpace::kShared.
  void Add(const Batch& batch);

  uint64_t distinct() const { return slot_of_.size(); }
  uint64_t shared() const { return shared_.size(); }
  std::optional<Example> example() const { return example_; }  // the first that was found

 private:
  absl::flat_hash_map<base::Key, uint32_t> slot_of_;  // the slot an id was first seen in
  absl::flat_hash_set<base::Key> shared_;
  std::optional<Example> example_;
};

}  // namespace regatta::data
