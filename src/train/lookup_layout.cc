#include "train/lookup_layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace regatta::train {

LookupLayout::LookupLayout(const NetSpec& spec) {
  std::map<std::string, int> table_of;
  std::vector<std::set<int>> read;  // the slots of each table's lookups
  for (size_t i = 0; i < spec.lookups.size(); ++i) {
    const LookupSpec& lookup = spec.lookups[i];
    const auto [found, fresh] = table_of.try_emplace(lookup.table, static_cast<int>(tables.size()));
    if (fresh) {
      tables.push_back({.name = lookup.table, .dim = lookup.dim, .l2 = lookup.l2, .slot_set = 0, .lookups = {}});
      read.emplace_back();
    }
    const auto table = static_cast<size_t>(found->second);
    tables[table].lookups.push_back(static_cast<int>(i));
    lookups.push_back({.table = found->second, .chosen = {}, .whole = false});
    const std::vector<int> slots = spec.SlotsOf(static_cast<int>(i));
    read[table].insert(slots.begin(), slots.end());
  }
  for (size_t t = 0; t < tables.size(); ++t) {
    const std::vector<int> set(read[t].begin(), read[t].end());
    const auto same = std::find(slot_sets.begin(), slot_sets.end(), set);
    tables[t].slot_set = static_cast<int>(same - slot_sets.begin());
    if (same == slot_sets.end()) slot_sets.push_back(set);
  }
  for (size_t i = 0; i < lookups.size(); ++i) {
    const std::vector<int>& set =
        slot_sets[static_cast<size_t>(tables[static_cast<size_t>(lookups[i].table)].slot_set)];
    const std::vector<int> slots = spec.SlotsOf(static_cast<int>(i));
    lookups[i].whole = slots == set;
    for (const int slot : slots)
      lookups[i].chosen.push_back(static_cast<int>(std::lower_bound(set.begin(), set.end(), slot) - set.begin()));
  }
}

}  // namespace regatta::train
