#include "table/gradient_sum.h"

#include <bit>

#include "base/key.h"

namespace regatta::table {
namespace {

constexpr uint32_t kEmpty = ~uint32_t{0};

}  // namespace

// Walks the shards in order and in each the pushes in order, so that the keys of the sum are grouped by shard too.
base::TableGrads GradientSum::Sum(std::span<const base::TableGrads> pushes) {
  size_t total = 0;
  for (const base::TableGrads& push : pushes) total += push.keys.keys.size();
  const int width = pushes.front().grads.width;
  keys_.clear();
  rows_.clear();
  keys_.reserve(total);
  rows_.reserve(total * static_cast<size_t>(width));
  slots_.assign(std::bit_ceil(2 * total + 1), kEmpty);
  shard_begin_.assign(base::kVirtualShards + 1, 0);
  std::vector<size_t> at(pushes.size(), 0);
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    for (size_t p = 0; p < pushes.size(); ++p) {
      const std::span<const base::Key> keys = pushes[p].keys.keys;
      for (; at[p] < keys.size(); ++at[p]) {
        const uint64_t hash = base::KeyHash(keys[at[p]]);
        if (base::ShardOfHash(hash) > shard) break;
        AddRow(keys[at[p]], hash, pushes[p].grads.row(static_cast<int64_t>(at[p])), static_cast<size_t>(width));
      }
    }
    shard_begin_[shard + 1] = static_cast<uint32_t>(keys_.size());
  }
  base::TableGrads sum;
  sum.keys = {pushes.front().keys.table, keys_, shard_begin_};
  sum.grads = {rows_.data(), width, width};
  sum.learning_rate = pushes.front().learning_rate;
  return sum;
}

void GradientSum::AddRow(base::Key key, uint64_t hash, const float* row, size_t width) {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != kEmpty && keys_[slots_[slot]] != key) slot = (slot + 1) & mask;
  if (slots_[slot] == kEmpty) {
    slots_[slot] = static_cast<uint32_t>(keys_.size());
    keys_.push_back(key);
    rows_.insert(rows_.end(), row, row + width);
    return;
  }
  float* sum = rows_.data() + slots_[slot] * width;
  for (size_t j = 0; j < width; ++j) sum[j] += row[j];
}

}  // namespace regatta::table
