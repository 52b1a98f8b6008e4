#include "lookup/key_plan.h"

#include <algorithm>
#include <bit>

namespace regatta::lookup {

using base::Key;
using base::kVirtualShards;

void Planner::Plan(const Bags& bags, KeyPlan& plan) {
  plan.offsets.assign(bags.offsets.begin(), bags.offsets.end());
  plan.values.assign(bags.values.begin(), bags.values.end());
  const size_t bag_count = bags.offsets.empty() ? 0 : bags.offsets.size() - 1;
  plan.one_id_a_bag = bags.keys.size() == bag_count;
  for (size_t b = 0; plan.one_id_a_bag && b <= bag_count; ++b) plan.one_id_a_bag = bags.offsets[b] == b;
  Partition(bags.keys, plan);
  Deduplicate(plan);
  ListOccurrences(bags, plan);
}

// A stable counting sort by shard: it groups the keys for the table, and leaves each shard's few entries in cache for
// the deduplication.
void Planner::Partition(std::span<const Key> keys, KeyPlan& plan) {
  entry_begin_.assign(kVirtualShards + 1, 0);
  for (Key key : keys) ++entry_begin_[base::ShardOf(key) + 1];
  for (int s = 0; s < kVirtualShards; ++s) entry_begin_[s + 1] += entry_begin_[s];
  entries_.resize(keys.size());
  plan.shard_begin.assign(entry_begin_.begin(), entry_begin_.end());  // serves as the cursors first
  for (uint32_t id = 0; id < keys.size(); ++id) {
    const Key key = keys[id];
    entries_[plan.shard_begin[base::ShardOf(key)]++] = {key, id, 0};
  }
}

void Planner::Deduplicate(KeyPlan& plan) {
  plan.keys.resize(entries_.size());
  plan.row_of.resize(entries_.size());
  plan.occurrence_begin.assign(entries_.size() + 1, 0);
  uint32_t rows = 0;
  for (int s = 0; s < kVirtualShards; ++s) {
    plan.shard_begin[s] = rows;
    const uint32_t begin = entry_begin_[s], end = entry_begin_[s + 1];
    if (begin == end) continue;
    const size_t capacity = std::bit_ceil<size_t>(2 * (end - begin));
    const size_t mask = capacity - 1;
    if (slots_.size() < capacity) slots_.resize(capacity);
    std::fill_n(slots_.begin(), capacity, 0);
    for (uint32_t e = begin; e < end; ++e) {
      Entry& entry = entries_[e];
      size_t at = base::KeyHash(entry.key) & mask;
      while (slots_[at] != 0 && plan.keys[slots_[at] - 1] != entry.key) at = (at + 1) & mask;
      if (slots_[at] == 0) {
        plan.keys[rows] = entry.key;
        slots_[at] = ++rows;
      }
      entry.row = slots_[at] - 1;
      plan.row_of[entry.id] = entry.row;
      ++plan.occurrence_begin[entry.row + 1];
    }
  }
  plan.shard_begin[kVirtualShards] = rows;
  plan.keys.resize(rows);
  plan.occurrence_begin.resize(rows + 1);
  for (uint32_t u = 0; u < rows; ++u) plan.occurrence_begin[u + 1] += plan.occurrence_begin[u];
}

void Planner::ListOccurrences(const Bags& bags, KeyPlan& plan) {
  const bool weighted = !bags.values.empty();
  if (!plan.one_id_a_bag) {
    bag_of_.resize(bags.keys.size());
    for (uint32_t b = 0; b + 1 < bags.offsets.size(); ++b)
      std::fill(bag_of_.begin() + bags.offsets[b], bag_of_.begin() + bags.offsets[b + 1], b);
  }
  plan.occurrence.resize(entries_.size());
  plan.occurrence_value.resize(weighted ? entries_.size() : 0);
  counts_.assign(plan.occurrence_begin.begin(), plan.occurrence_begin.end());
  for (const Entry& entry : entries_) {
    const uint32_t at = counts_[entry.row]++;
    plan.occurrence[at] = plan.one_id_a_bag ? entry.id : bag_of_[entry.id];
    if (weighted) plan.occurrence_value[at] = bags.values[entry.id];
  }
}

}  // namespace regatta::lookup
