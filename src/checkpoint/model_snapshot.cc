#include "checkpoint/model_snapshot.h"

#include "glog/logging.h"

namespace regatta::checkpoint {
namespace {

class SnapshotRowSource final : public RowSource {
 public:
  static absl::StatusOr<std::unique_ptr<RowSource>> Create(table::SparseTable& table, table::Which which,
                                                           const PartRange& shards) {
    std::unique_ptr<SnapshotRowSource> source(new SnapshotRowSource(table, which));
    for (uint64_t shard = shards.begin; shard < shards.end; ++shard) {
      ASSIGN_OR_RETURN(source->shard_rows_[shard], table.SnapshotRows(static_cast<uint32_t>(shard), which));
    }
    return source;
  }

  const table::SparseTableConfig& config() const override { return table_.config(); }
  int row_width() const override { return table_.row_width(); }
  int pull_width() const override { return table_.pull_width(); }
  uint64_t ShardRows(uint32_t shard) const override { return shard_rows_[shard]; }
  absl::Status ForEachRow(uint32_t shard, const table::SparseTable::RowFn& fn) const override {
    return table_.ForEachSnapshotRow(shard, which_, fn);
  }
  Visits visits() const override { return Visits::kOne; }

 private:
  SnapshotRowSource(table::SparseTable& table, table::Which which)
      : table_(table), which_(which), shard_rows_(static_cast<size_t>(base::kVirtualShards)) {}

  table::SparseTable& table_;
  const table::Which which_;
  std::vector<uint64_t> shard_rows_;
};

SnapshotOptions WithDenseBlock(SnapshotOptions options, const table::DenseTable* dense) {
  if (!options.part || dense == nullptr) return options;
  const auto begin = static_cast<uint64_t>(dense->begin());
  options.part->dense = {begin, begin + static_cast<uint64_t>(dense->size())};
  return options;
}

}  // namespace

ModelSnapshot::ModelSnapshot(const ModelTables& model, const SnapshotOptions& options)
    : model_(model), options_(WithDenseBlock(options, model.dense)) {}

absl::StatusOr<std::unique_ptr<ModelSnapshot>> ModelSnapshot::Begin(const ModelTables& model,
                                                                    const SnapshotOptions& options) {
  std::unique_ptr<ModelSnapshot> snapshot(new ModelSnapshot(model, options));
  for (table::SparseTable* table : model.sparse) {
    RETURN_IF_ERROR(table->BeginSnapshot(options.bound));
    ++snapshot->begun_;
    // Says at once, not to the writer, that changes cannot be told.
    if (options.base) RETURN_IF_ERROR(table->SnapshotRows(0, table::Which::kChanged).status());
  }
  if (model.dense != nullptr) snapshot->dense_ = model.dense->Copy();
  return snapshot;
}

ModelSnapshot::~ModelSnapshot() {
  for (size_t i = 0; i < begun_; ++i) {
    const absl::Status status = model_.sparse[i]->EndSnapshot(table::SnapshotEnd::kAbandoned);
    LOG_IF(DFATAL, !status.ok()) << status;
  }
}

absl::StatusOr<SaveContents> ModelSnapshot::Contents() {
  SaveContents contents;
  contents.part = options_.part;
  contents.base = options_.base;
  const PartRange shards = options_.part ? options_.part->shards : PartRange{0, base::kVirtualShards};
  rows_.clear();
  for (table::SparseTable* table : model_.sparse) {
    ASSIGN_OR_RETURN(auto rows, SnapshotRowSource::Create(
                                    *table, options_.base ? table::Which::kChanged : table::Which::kAll, shards));
    contents.sparse.push_back(rows.get());
    rows_.push_back(std::move(rows));
  }
  if (model_.dense == nullptr) return contents;
  DenseContents& dense = contents.dense.emplace();
  dense.config = model_.dense->config();
  dense.updates = dense_.updates;
  dense.arrays.push_back(dense_.values);
  for (const std::vector<float>& state : dense_.states) dense.arrays.push_back(state);
  return contents;
}

absl::Status ModelSnapshot::Complete() {
  absl::Status first;
  for (; begun_ > 0; --begun_) {
    const absl::Status status = model_.sparse[begun_ - 1]->EndSnapshot(table::SnapshotEnd::kComplete);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace regatta::checkpoint
