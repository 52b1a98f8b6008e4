#include "table/sparse_table.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/gradient.h"
#include "base/learning_rate.h"
#include "table/accessor/accessor_factory.h"

namespace regatta::table {
namespace {

constexpr uint64_t kAllWanted = ~uint64_t{0};

std::string Named(const SparseTableConfig& config) { return absl::StrCat("table ", config.name); }

class PullVisitor final : public RowVisitor {
 public:
  PullVisitor(const Accessor& accessor, std::span<const base::Key> keys, base::StepKind kind, base::RowsView<float> out)
      : accessor_(accessor), keys_(keys), kind_(kind), out_(out) {}

  uint64_t Wanted(size_t, size_t) override { return kAllWanted; }
  void Visit(const RowBlock& block) override {
    base::RowsView<float> out = out_;
    out.data = out_.row(static_cast<int64_t>(block.first));
    accessor_.Pull({keys_.subspan(block.first, block.rows.size()), block.rows.data(), kind_, out});
  }

 private:
  const Accessor& accessor_;
  const std::span<const base::Key> keys_;
  const base::StepKind kind_;
  const base::RowsView<float> out_;
};

using Apply = void (Accessor::*)(const PushBlock&) const;

class PushVisitor final : public RowVisitor {
 public:
  // Of the options it takes what becomes of NaN, and the samples.
  PushVisitor(const Accessor& accessor, Apply apply, const base::TableGrads& grads, const PushOptions& options,
              float learning_rate)
      : accessor_(accessor),
        apply_(apply),
        grads_(grads),
        policy_(options.nan_policy),
        finite_(options.finite),
        samples_(static_cast<float>(options.samples)),
        learning_rate_(learning_rate) {}

  uint64_t Wanted(size_t first, size_t count) override {
    if (finite_ || policy_ != NanPolicy::kSkip) return kAllWanted;
    const uint64_t finite = base::FiniteRows(GradsFrom(first), static_cast<int>(count));
    skipped_ += count - static_cast<size_t>(std::popcount(finite));
    return finite;
  }

  void Visit(const RowBlock& block) override {
    const int count = static_cast<int>(block.rows.size());
    base::RowsView<const float> grads = GradsFrom(block.first);
    if (!finite_ && policy_ == NanPolicy::kClip) grads = Clip(grads, count);
    PushBlock push;
    push.keys = grads_.keys.keys.subspan(block.first, block.rows.size());
    push.created = block.created;
    push.update = {block.rows.data(), grads, count, 0, samples_, learning_rate_};
    if (!grads_.slot.empty()) push.slot = grads_.slot.subspan(block.first, block.rows.size());
    if (!grads_.show.empty()) push.show = grads_.show.subspan(block.first, block.rows.size());
    if (!grads_.click.empty()) push.click = grads_.click.subspan(block.first, block.rows.size());
    (accessor_.*apply_)(push);
  }

  uint64_t skipped() const { return skipped_; }

 private:
  base::RowsView<const float> GradsFrom(size_t first) const {
    base::RowsView<const float> grads = grads_.grads;
    grads.data = grads_.grads.row(static_cast<int64_t>(first));
    return grads;
  }

  base::RowsView<const float> Clip(const base::RowsView<const float>& grads, int count) {
    if (std::popcount(base::FiniteRows(grads, count)) == count) return grads;
    const size_t width = static_cast<size_t>(grads.width);
    clipped_.resize(kBlock * width);
    for (int i = 0; i < count; ++i)
      base::CopyFinite({grads.row(i), width}, clipped_.data() + static_cast<size_t>(i) * width);
    return {clipped_.data(), grads.width, grads.width, base::Device::kCpu};
  }

  const Accessor& accessor_;
  const Apply apply_;
  const base::TableGrads& grads_;
  const NanPolicy policy_;
  const bool finite_;
  const float samples_;
  const float learning_rate_;
  uint64_t skipped_ = 0;
  std::vector<float> clipped_;
};

class LoadVisitor final : public RowVisitor {
 public:
  LoadVisitor(std::span<const float> rows, size_t width) : rows_(rows), width_(width) {}
  uint64_t Wanted(size_t, size_t) override { return kAllWanted; }
  void Visit(const RowBlock& block) override {
    for (size_t i = 0; i < block.rows.size(); ++i) {
      std::copy_n(rows_.data() + (block.first + i) * width_, width_, block.rows[i]);
    }
  }

 private:
  const std::span<const float> rows_;
  const size_t width_;
};

template <typename T>
absl::Status CheckView(const base::RowsView<T>& view, int width, size_t rows) {
  if (view.device != base::Device::kCpu) return absl::InvalidArgumentError("rows are not in host memory");
  if (view.width != width) {
    return absl::InvalidArgumentError(absl::StrCat("rows are ", view.width, " wide, the table's are ", width));
  }
  if (rows > 0 && (view.data == nullptr || view.stride < view.width)) {
    return absl::InvalidArgumentError("rows have no memory, or overlap");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SparseTable>> SparseTable::Create(const SparseTableConfig& config) {
  if (config.name.empty()) return absl::InvalidArgumentError("a sparse table has no name");
  auto accessor = MakeAccessor(config);
  if (!accessor.ok()) return base::Annotate(accessor.status(), Named(config));
  const auto schedule = Schedule::Create(config.schedule);
  if (!schedule.ok()) return base::Annotate(schedule.status(), Named(config));
  auto store = MemoryStore::Create(static_cast<uint64_t>((*accessor)->row_width()) * sizeof(float),
                                   config.weights_only ? ShardIndex::Growth::kLate : ShardIndex::Growth::kSpread);
  if (!store.ok()) return base::Annotate(store.status(), Named(config));
  return std::unique_ptr<SparseTable>(new SparseTable(config, *std::move(accessor), *schedule, *std::move(store)));
}

SparseTable::SparseTable(const SparseTableConfig& config, std::unique_ptr<Accessor> accessor, const Schedule& schedule,
                         std::unique_ptr<MemoryStore> store)
    : config_(config), accessor_(std::move(accessor)), schedule_(schedule), store_(std::move(store)) {}

absl::Status SparseTable::Pull(const base::TableKeys& keys, base::StepKind kind, base::RowsView<float> out) const {
  if (absl::Status s = CheckView(out, pull_width(), keys.keys.size()); !s.ok()) {
    return base::Annotate(s, Named(config_) + ": pull");
  }
  PullVisitor visitor(*accessor_, keys.keys, kind, out);
  const WalkOptions walk{Missing::kNull, static_cast<uint64_t>(pull_width()) * sizeof(float)};
  return base::Annotate(store_->Walk(keys.keys, walk, visitor), Named(config_));
}

absl::Status SparseTable::Push(const base::TableGrads& grads, const PushOptions& options) {
  RETURN_IF_ERROR(base::Annotate(CheckPush(grads, options), Named(config_) + ": push"));
  if (!options.finite && options.nan_policy == NanPolicy::kAbort) RETURN_IF_ERROR(CheckFinite(grads));
  const float learning_rate = grads.learning_rate.value_or(
      static_cast<float>(schedule_.LearningRate(accessor_->learning_rate(), options.step)));
  PushVisitor visitor(*accessor_, &Accessor::Push, grads, options, learning_rate);
  const WalkOptions walk{Missing::kCreate, static_cast<uint64_t>(row_width()) * sizeof(float)};
  const absl::Status status = store_->Walk(grads.keys.keys, walk, visitor);
  if (visitor.skipped() > 0) skipped_.fetch_add(visitor.skipped(), std::memory_order_relaxed);
  return base::Annotate(status, Named(config_));
}

absl::Status SparseTable::Add(const base::TableGrads& differences, NanPolicy nan_policy) {
  return Write(differences, nan_policy, &Accessor::Add);
}

absl::Status SparseTable::Assign(const base::TableGrads& values) {
  return Write(values, NanPolicy::kSkip, &Accessor::Assign);
}

absl::Status SparseTable::Write(const base::TableGrads& values, NanPolicy nan_policy, Apply write) {
  RETURN_IF_ERROR(
      base::Annotate(CheckView(values.grads, pull_width(), values.keys.keys.size()), Named(config_) + ": write"));
  if (nan_policy == NanPolicy::kAbort) RETURN_IF_ERROR(CheckFinite(values));
  PushVisitor visitor(*accessor_, write, values, {.nan_policy = nan_policy}, 0);
  const WalkOptions walk{Missing::kCreate, static_cast<uint64_t>(pull_width()) * sizeof(float)};
  const absl::Status status = store_->Walk(values.keys.keys, walk, visitor);
  if (visitor.skipped() > 0) skipped_.fetch_add(visitor.skipped(), std::memory_order_relaxed);
  return base::Annotate(status, Named(config_));
}

absl::Status SparseTable::CheckPush(const base::TableGrads& grads, const PushOptions& options) const {
  const size_t count = grads.keys.keys.size();
  RETURN_IF_ERROR(CheckView(grads.grads, push_width(), count));
  if (options.samples == 0) return absl::InvalidArgumentError("the gradients are sums over 0 samples");
  RETURN_IF_ERROR(base::CheckLearningRate(grads.learning_rate));
  RETURN_IF_ERROR(CheckRateOf(config_.rule, grads.learning_rate));
  const PushColumns columns = accessor_->columns();
  if (columns.slot && grads.slot.size() != count) return absl::InvalidArgumentError("a slot for each key is missing");
  if (columns.show && grads.show.size() != count) return absl::InvalidArgumentError("a show for each key is missing");
  if (columns.click && grads.click.size() != count) {
    return absl::InvalidArgumentError("a click for each key is missing");
  }
  return absl::OkStatus();
}

absl::Status SparseTable::CheckLearningRate(std::optional<float> rate) const {
  absl::Status checked = base::CheckLearningRate(rate);
  if (checked.ok()) checked = CheckRateOf(config_.rule, rate);
  return checked.ok() ? checked : base::Annotate(checked, Named(config_));
}

absl::Status SparseTable::CheckFinite(const base::TableGrads& grads) const {
  if (base::CountNonFiniteRows(grads.grads, grads.keys.keys.size()) == 0) return absl::OkStatus();
  const size_t width = static_cast<size_t>(grads.grads.width);
  for (size_t i = 0; i < grads.keys.keys.size(); ++i) {
    const std::span<const float> row(grads.grads.row(static_cast<int64_t>(i)), width);
    if (base::AllFinite(row)) continue;
    const size_t element = base::FirstNonFinite(row);
    return absl::FailedPreconditionError(absl::StrCat(Named(config_), ": the gradient of key ", grads.keys.keys[i],
                                                      " holds ", row[element], " at element ", element,
                                                      "; nothing was applied (nan_policy abort)"));
  }
  return absl::OkStatus();
}

void SparseTable::ForEachRow(uint32_t shard, const RowFn& fn) const {
  const size_t width = static_cast<size_t>(row_width());
  store_->ForEachRow(shard, [&](base::Key key, const float* row) { fn(key, {row, width}); });
}

absl::Status SparseTable::BeginSnapshot(uint64_t bound) {
  return base::Annotate(store_->BeginSnapshot(bound), Named(config_));
}

absl::Status SparseTable::ForEachSnapshotRow(uint32_t shard, Which which, const RowFn& fn) {
  const size_t width = static_cast<size_t>(row_width());
  return base::Annotate(store_->ForEachSnapshotRow(shard, which,
                                                   [&](base::Key key, const float* row) {
                                                     fn(key, {row, width});
                                                   }),
                        Named(config_));
}

absl::StatusOr<uint64_t> SparseTable::SnapshotRows(uint32_t shard, Which which) const {
  absl::StatusOr<uint64_t> rows = store_->SnapshotRows(shard, which);
  if (!rows.ok()) return base::Annotate(rows.status(), Named(config_));
  return rows;
}

absl::Status SparseTable::EndSnapshot(SnapshotEnd end) {
  return base::Annotate(store_->EndSnapshot(end), Named(config_));
}

absl::Status SparseTable::Load(uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows) {
  const size_t width = static_cast<size_t>(row_width());
  if (rows.size() != keys.size() * width) {
    return absl::InvalidArgumentError(absl::StrCat(Named(config_), ": load: ", keys.size(), " keys and ", rows.size(),
                                                   " floats, where a row has ", width));
  }
  for (const base::Key key : keys) {
    if (base::ShardOf(key) == shard) continue;
    return absl::InvalidArgumentError(absl::StrCat(Named(config_), ": load: key ", key, " belongs to virtual shard ",
                                                   base::ShardOf(key), ", not ", shard));
  }
  LoadVisitor visitor(rows, width);
  return base::Annotate(store_->Walk(keys, {Missing::kCreate, width * sizeof(float)}, visitor), Named(config_));
}

}  // namespace regatta::table
