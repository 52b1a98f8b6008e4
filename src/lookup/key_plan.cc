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

  Partition(bags);
  plan.keys.clear();
  plan.occurrence_begin.assign(1, 0);
  plan.shard_begin.resize(kVirtualShards + 1);
  plan.row_of.resize(bags.keys.size());
  plan.occurrence.resize(bags.keys.size());
  plan.occurrence_value.resize(bags.values.size());
  // Shard by shard, so that all but row_of stays in the first-level cache.
  for (int s = 0; s < kVirtualShards; ++s) {
    const uint32_t first_row = static_cast<uint32_t>(plan.keys.size());
    plan.shard_begin[s] = first_row;
    const std::span<const Entry> entries(entries_.data() + entry_begin_[s], entries_.data() + entry_begin_[s + 1]);
    if (entries.empty()) continue;
    Deduplicate(entries, plan);
    ListOccurrences(entries, first_row, bags.values, plan);
  }
  plan.shard_begin[kVirtualShards] = static_cast<uint32_t>(plan.keys.size());
}

// A stable counting sort by shard: it groups the keys for the table, and makes the deduplication one of few keys.
void Planner::Partition(const Bags& bags) {
  entry_begin_.assign(kVirtualShards + 1, 0);
  shard_of_.resize(bags.keys.size());
  for (size_t id = 0; id < bags.keys.size(); ++id) {
    const uint32_t shard = base::ShardOf(bags.keys[id]);
    shard_of_[id] = static_cast<uint16_t>(shard);
    ++entry_begin_[shard + 1];
  }
  for (int s = 0; s < kVirtualShards; ++s) entry_begin_[s + 1] += entry_begin_[s];
  entries_.resize(bags.keys.size());
  cursor_.assign(entry_begin_.begin(), entry_begin_.end());
  for (uint32_t bag = 0; bag + 1 < bags.offsets.size(); ++bag) {
    for (uint32_t id = bags.offsets[bag]; id < bags.offsets[bag + 1]; ++id)
      entries_[cursor_[shard_of_[id]]++] = {bags.keys[id], id, bag};
  }
}

// Appends the distinct keys, and the number of each one's occurrences (to occurrence_begin, behind the key's place).
void Planner::Deduplicate(std::span<const Entry> entries, KeyPlan& plan) {
  const int bits = std::bit_width(2 * entries.size() - 1);
  if (slots_.size() < size_t{1} << bits) slots_.resize(size_t{1} << bits);
  std::fill_n(slots_.begin(), size_t{1} << bits, 0);
  row_.resize(std::max(row_.size(), entries.size()));
  uint32_t rows = static_cast<uint32_t>(plan.keys.size());
  plan.keys.resize(rows + entries.size());
  plan.occurrence_begin.resize(rows + entries.size() + 1);
  Key* const keys = plan.keys.data();
  uint32_t* const count = plan.occurrence_begin.data() + 1;
  const size_t mask = (size_t{1} << bits) - 1;
  for (size_t e = 0; e < entries.size(); ++e) {
    const Key key = entries[e].key;
    size_t at = key * 0x9E3779B97F4A7C15ULL >> (64 - bits);  // cheaper than KeyHash, and of a shard's keys as good
    while (slots_[at] != 0 && keys[slots_[at] - 1] != key) at = (at + 1) & mask;
    if (slots_[at] == 0) {
      keys[rows] = key;
      count[rows] = 0;
      slots_[at] = ++rows;
    }
    const uint32_t row = slots_[at] - 1;
    ++count[row];
    row_[e] = row;
    plan.row_of[entries[e].id] = row;
  }
  plan.keys.resize(rows);
  plan.occurrence_begin.resize(rows + 1);
}

// Turns the counts behind first_row into begins, and lists the bags.
void Planner::ListOccurrences(std::span<const Entry> entries, uint32_t first_row, std::span<const float> values,
                              KeyPlan& plan) {
  const uint32_t rows = static_cast<uint32_t>(plan.keys.size()) - first_row;
  uint32_t* const begin = plan.occurrence_begin.data() + first_row;
  cursor_.resize(std::max<size_t>(cursor_.size(), rows));
  for (uint32_t u = 0; u < rows; ++u) {
    cursor_[u] = begin[u];
    begin[u + 1] += begin[u];
  }
  for (size_t e = 0; e < entries.size(); ++e) {
    const uint32_t at = cursor_[row_[e] - first_row]++;
    plan.occurrence[at] = entries[e].bag;
    if (!values.empty()) plan.occurrence_value[at] = values[entries[e].id];
  }
}

}  // namespace regatta::lookup
