// Where a rank resumes when its worker connects: at the beginning, or where the process was that it replaces.
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

struct ResumePoint {
  std::string predecessor;                // where the process ran that this one replaces; "" = none
  base::DataPosition position;            // batches that every lane of every server has; of the last pass that it began
  std::vector<base::DataPosition> dense;  // of that pass, that a server's dense lane has; a server each
  uint64_t step = 0;                      // the servers' step behind the last push that all lanes have
  std::set<std::pair<std::string, uint64_t>> completed;  // rounds that are over: name and round

  bool returns() const { return !predecessor.empty(); }
  bool Completed(const std::string& name, uint64_t round = 0) const { return completed.contains({name, round}); }
  // Of the name; none where none is over.
  std::optional<uint64_t> LastRound(const std::string& name) const {
    const auto after = completed.upper_bound({name, ~uint64_t{0}});
    if (after == completed.begin() || std::prev(after)->first != name) return std::nullopt;
    return std::prev(after)->second;
  }
};

}  // namespace regatta::client
