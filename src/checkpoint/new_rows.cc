#include "checkpoint/new_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "table/accessor/accessor_factory.h"
#include "table/rule/rule.h"

namespace regatta::checkpoint {

absl::StatusOr<ShardOrder> ShardOrder::Of(std::span<const base::Key> keys) {
  ShardOrder made;
  made.order_.resize(keys.size());
  std::iota(made.order_.begin(), made.order_.end(), 0);
  std::sort(made.order_.begin(), made.order_.end(), [&](uint64_t a, uint64_t b) {
    return std::make_pair(base::ShardOf(keys[a]), keys[a]) < std::make_pair(base::ShardOf(keys[b]), keys[b]);
  });
  made.begin_.assign(base::kVirtualShards + 1, 0);
  for (size_t i = 0; i < made.order_.size(); ++i) {
    const base::Key key = keys[made.order_[i]];
    if (i > 0 && key == keys[made.order_[i - 1]])
      return absl::InvalidArgumentError(absl::StrCat("key ", key, " comes twice"));
    ++made.begin_[base::ShardOf(key) + 1];
  }
  std::partial_sum(made.begin_.begin(), made.begin_.end(), made.begin_.begin());
  return made;
}

absl::StatusOr<std::vector<float>> NewRowState(const table::SparseTableConfig& config) {
  ASSIGN_OR_RETURN(const auto accessor, table::MakeAccessor(config));
  ASSIGN_OR_RETURN(const auto rule, table::MakeSparseRule(config.rule));
  std::vector<float> state(static_cast<size_t>(accessor->row_width() - accessor->pull_width()));
  if (config.accessor != "plain" || static_cast<size_t>(rule->StateSize(config.dim)) != state.size())
    return absl::InvalidArgumentError(
        absl::StrCat("rows of accessor ", config.accessor, " cannot be made from weights alone"));
  if (!state.empty()) rule->InitState(config.dim, state.data());
  return state;
}

NewRows::NewRows(std::span<const base::Key> keys, std::span<const float> weights, size_t pull_width,
                 std::vector<float> state, ShardOrder order)
    : keys_(keys), weights_(weights), pull_width_(pull_width), state_(std::move(state)), order_(std::move(order)) {}

absl::StatusOr<NewRows> NewRows::Make(const table::SparseTableConfig& config, std::span<const base::Key> keys,
                                      std::span<const float> weights) {
  const auto named = [&](const absl::Status& status) {
    return base::Annotate(status, absl::StrCat("table ", config.name));
  };
  auto state = NewRowState(config);
  if (!state.ok()) return named(state.status());
  ASSIGN_OR_RETURN(const auto accessor, table::MakeAccessor(config));
  const auto width = static_cast<size_t>(accessor->pull_width());
  if (weights.size() != keys.size() * width)
    return named(absl::InvalidArgumentError(
        absl::StrCat(weights.size(), " weights for ", keys.size(), " keys of ", width, " floats each")));
  const auto bad = std::find_if(weights.begin(), weights.end(), [](float w) { return !std::isfinite(w); });
  if (bad != weights.end())
    return named(absl::InvalidArgumentError(absl::StrCat(
        "the weights of key ", keys[static_cast<size_t>(bad - weights.begin()) / width], " hold NaN or Inf")));
  auto order = ShardOrder::Of(keys);
  if (!order.ok()) return named(order.status());
  return NewRows(keys, weights, width, *std::move(state), *std::move(order));
}

absl::Status NewRows::ForEachBlock(size_t bytes, const BlockFn& fn) const {
  const size_t width = pull_width_ + state_.size();
  const size_t most = std::max<size_t>(1, bytes / (sizeof(base::Key) + width * sizeof(float)));
  std::vector<base::Key> keys;
  std::vector<float> rows;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    const std::span<const uint64_t> all = order_.Shard(shard);
    for (size_t begin = 0; begin < all.size(); begin += keys.size()) {
      keys.clear();
      rows.clear();
      for (const uint64_t i : all.subspan(begin, std::min(most, all.size() - begin))) {
        keys.push_back(keys_[i]);
        const std::span<const float> weights = weights_.subspan(i * pull_width_, pull_width_);
        rows.insert(rows.end(), weights.begin(), weights.end());
        rows.insert(rows.end(), state_.begin(), state_.end());
      }
      RETURN_IF_ERROR(fn(shard, keys, rows));
    }
  }
  return absl::OkStatus();
}

}  // namespace regatta::checkpoint
