// Keys of a table, each once.
// Thread-safety: belongs to its owner's lock.
#pragma once

#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/key.h"

namespace regatta::comm {

class KeySet {
 public:
  bool Contains(base::Key key) const { return keys_.contains(key); }
  void Insert(std::span<const base::Key> keys) { keys_.insert(keys.begin(), keys.end()); }
  std::vector<base::Key> Copy() const { return {keys_.begin(), keys_.end()}; }
  std::vector<base::Key> Take() {
    std::vector<base::Key> taken(keys_.begin(), keys_.end());
    keys_.clear();
    return taken;
  }

 private:
  absl::flat_hash_set<base::Key> keys_;
};

}  // namespace regatta::comm
