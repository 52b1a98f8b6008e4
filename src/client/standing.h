// Where a rank stands when its worker connects: at the beginning, or where the process was whose place it takes.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/step.h"

namespace regatta::client {

struct Standing {
  std::string before;                     // where the process ran whose place this one takes; "" = there was none
  base::DataPosition position;            // batches that every lane of every server has; of the last pass that it began
  std::vector<base::DataPosition> dense;  // of that pass, that a server's dense lane has; a server each
  uint64_t step = 0;                      // the servers' step behind the last push that all lanes have
  std::set<std::pair<std::string, uint64_t>> met;  // meetings that are over: name and round

  bool returns() const { return !before.empty(); }
  bool Met(const std::string& name, uint64_t round = 0) const { return met.contains({name, round}); }
  // Of the name; none where none is over.
  std::optional<uint64_t> LastRound(const std::string& name) const {
    const auto after = met.upper_bound({name, ~uint64_t{0}});
    if (after == met.begin() || std::prev(after)->first != name) return std::nullopt;
    return std::prev(after)->second;
  }
};

}  // namespace regatta::client
