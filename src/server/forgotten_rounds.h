// All-gather rounds that are over and whose answers are not kept any more, each as a hash of its name and number, so
// that a call for one can be told that nobody will come. Of more than kMost the oldest are dropped. Thread-safety:
// belongs to its owner's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "base/hash.h"

namespace regatta::server {

class ForgottenRounds {
 public:
  static constexpr size_t kMost = size_t{1} << 17;

  void Add(std::string_view name, uint64_t number) { Restore(HashOf(name, number)); }
  bool Contains(std::string_view name, uint64_t number) const { return known_.contains(HashOf(name, number)); }
  // The oldest first; Restore takes them again, in another process too.
  const std::deque<uint64_t>& hashes() const { return hashes_; }
  void Restore(uint64_t hash) {
    if (!known_.insert(hash).second) return;
    hashes_.push_back(hash);
    if (hashes_.size() <= kMost) return;
    known_.erase(hashes_.front());
    hashes_.pop_front();
  }

 private:
  static uint64_t HashOf(std::string_view name, uint64_t number) {
    return base::Combine64(base::HashBytes(name), number);
  }

  std::deque<uint64_t> hashes_;
  absl::flat_hash_set<uint64_t> known_;  // the same
};

}  // namespace regatta::server
