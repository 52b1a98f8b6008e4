#include "table/checkpoint/model_cut.h"

#include "glog/logging.h"

namespace regatta::table {
namespace {

class CutRowSource final : public RowSource {
 public:
  static absl::StatusOr<std::unique_ptr<RowSource>> Create(SparseTable& table, Which which, const PartRange& shards) {
    std::unique_ptr<CutRowSource> source(new CutRowSource(table, which));
    for (uint64_t shard = shards.begin; shard < shards.end; ++shard) {
      ASSIGN_OR_RETURN(source->shard_rows_[shard], table.CutRows(static_cast<uint32_t>(shard), which));
    }
    return source;
  }

  const SparseTableConfig& config() const override { return table_.config(); }
  int row_width() const override { return table_.row_width(); }
  int pull_width() const override { return table_.pull_width(); }
  uint64_t ShardRows(uint32_t shard) const override { return shard_rows_[shard]; }
  absl::Status ForEachRow(uint32_t shard, const SparseTable::RowFn& fn) const override {
    return table_.ForEachCutRow(shard, which_, fn);
  }
  Visits visits() const override { return Visits::kOne; }

 private:
  CutRowSource(SparseTable& table, Which which)
      : table_(table), which_(which), shard_rows_(static_cast<size_t>(base::kVirtualShards)) {}

  SparseTable& table_;
  const Which which_;
  std::vector<uint64_t> shard_rows_;
};

CutOptions WithDenseBlock(CutOptions options, const DenseTable* dense) {
  if (!options.part || dense == nullptr) return options;
  const auto begin = static_cast<uint64_t>(dense->begin());
  options.part->dense = {begin, begin + static_cast<uint64_t>(dense->size())};
  return options;
}

}  // namespace

ModelCut::ModelCut(const ModelTables& model, const CutOptions& options)
    : model_(model), options_(WithDenseBlock(options, model.dense)) {}

absl::StatusOr<std::unique_ptr<ModelCut>> ModelCut::Begin(const ModelTables& model, const CutOptions& options) {
  std::unique_ptr<ModelCut> cut(new ModelCut(model, options));
  for (SparseTable* table : model.sparse) {
    RETURN_IF_ERROR(table->BeginCut(options.bound));
    ++cut->begun_;
    // Says at once, not to the writer, that changes cannot be told.
    if (options.base) RETURN_IF_ERROR(table->CutRows(0, Which::kChanged).status());
  }
  if (model.dense != nullptr) cut->dense_ = model.dense->Copy();
  return cut;
}

ModelCut::~ModelCut() {
  for (size_t i = 0; i < begun_; ++i) {
    const absl::Status status = model_.sparse[i]->EndCut(CutEnd::kAbandoned);
    LOG_IF(DFATAL, !status.ok()) << status;
  }
}

absl::StatusOr<SaveContents> ModelCut::Contents() {
  SaveContents contents;
  contents.part = options_.part;
  contents.base = options_.base;
  const PartRange shards = options_.part ? options_.part->shards : PartRange{0, base::kVirtualShards};
  rows_.clear();
  for (SparseTable* table : model_.sparse) {
    ASSIGN_OR_RETURN(auto rows, CutRowSource::Create(*table, options_.base ? Which::kChanged : Which::kAll, shards));
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

absl::Status ModelCut::Complete() {
  absl::Status first;
  for (; begun_ > 0; --begun_) {
    const absl::Status status = model_.sparse[begun_ - 1]->EndCut(CutEnd::kComplete);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace regatta::table
