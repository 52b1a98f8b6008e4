// All-gather rounds that are over and whose answers are not kept any more, so that a call for one can be told that
// nobody will come. Rounds of one name are over in the order of their numbers: of each name, as a hash, the last number
// that is forgotten is known. Of more than kMost names the oldest are dropped. Thread-safety: belongs to its owner's
// lock.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/hash.h"

namespace regatta::server {

class ForgottenRounds {
 public:
  static constexpr size_t kMost = size_t{1} << 16;

  void Add(std::string_view name, uint64_t number) { Note(base::HashBytes(name), number); }
  bool Contains(std::string_view name, uint64_t number) const {
    const auto last = last_.find(base::HashBytes(name));
    return last != last_.end() && number <= last->second;
  }
  bool empty() const { return last_.empty(); }
  // A hash and a number for each name, the oldest first; Restore takes them again, in another process too.
  std::vector<uint64_t> Pairs() const {
    std::vector<uint64_t> pairs;
    for (const uint64_t name : names_) pairs.insert(pairs.end(), {name, last_.at(name)});
    return pairs;
  }
  void Restore(std::span<const uint64_t> pairs) {
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) Note(pairs[i], pairs[i + 1]);
  }

 private:
  void Note(uint64_t name, uint64_t number) {
    const auto [last, fresh] = last_.try_emplace(name, number);
    if (number > last->second) last->second = number;
    if (!fresh) return;
    names_.push_back(name);
    if (names_.size() <= kMost) return;
    last_.erase(names_.front());
    names_.pop_front();
  }

  std::deque<uint64_t> names_;
  absl::flat_hash_map<uint64_t, uint64_t> last_;  // number, by name
};

}  // namespace regatta::server
