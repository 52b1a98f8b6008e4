#include "checkpoint/local_model.h"

#include "checkpoint/new_rows.h"

namespace regatta::checkpoint {
namespace {

constexpr size_t kFillBytes = 1 << 20;

class TableRows final : public RowSource {
 public:
  explicit TableRows(const table::SparseTable& table) : table_(table) {}
  const table::SparseTableConfig& config() const override { return table_.config(); }
  int row_width() const override { return table_.row_width(); }
  int pull_width() const override { return table_.pull_width(); }
  uint64_t ShardRows(uint32_t shard) const override { return table_.ShardRows(shard); }
  absl::Status ForEachRow(uint32_t shard, const table::SparseTable::RowFn& fn) const override {
    table_.ForEachRow(shard, fn);
    return absl::OkStatus();
  }

 private:
  const table::SparseTable& table_;
};

}  // namespace

SaveContents ContentsOf(const ModelView& model, std::vector<std::unique_ptr<RowSource>>& rows) {
  SaveContents contents;
  rows.clear();
  for (const table::SparseTable* table : model.sparse) {
    rows.push_back(std::make_unique<TableRows>(*table));
    contents.sparse.push_back(rows.back().get());
  }
  if (model.dense == nullptr) return contents;
  DenseContents& dense = contents.dense.emplace();
  dense.config = model.dense->config();
  dense.updates = model.dense->updates();
  dense.arrays.push_back(model.dense->Values());
  for (int i = 0; i < model.dense->state_count(); ++i) dense.arrays.push_back(model.dense->State(i));
  return contents;
}

absl::Status WriteCheckpoint(const std::string& folder, const ModelView& model, const RunState& run) {
  std::vector<std::unique_ptr<RowSource>> rows;
  SaveContents contents = ContentsOf(model, rows);
  contents.run = run;
  return WriteCheckpoint(folder, contents);
}

absl::StatusOr<SaveContents> LocalModel::Contents() {
  return ContentsOf({{tables_.sparse.begin(), tables_.sparse.end()}, tables_.dense}, rows_);
}

absl::Status LocalModel::LoadFrom(const CheckpointReader& reader, LoadKind kind) {
  return reader.LoadInto(tables_, kind);
}

absl::Status LocalModel::FillDense(std::span<const float> values) {
  const size_t size = tables_.dense == nullptr ? 0 : static_cast<size_t>(tables_.dense->size());
  RETURN_IF_ERROR(CheckDenseSize(values.size(), size));
  if (size == 0) return absl::OkStatus();
  const std::vector<std::vector<float>> states(static_cast<size_t>(tables_.dense->state_count()),
                                               std::vector<float>(size));
  return tables_.dense->Load(values, states, 0);
}

absl::Status LocalModel::FillRows(size_t table, std::span<const base::Key> keys, std::span<const float> weights) {
  table::SparseTable& to = *tables_.sparse[table];
  ASSIGN_OR_RETURN(const NewRows rows, NewRows::Make(to.config(), keys, weights));
  return rows.ForEachBlock(kFillBytes, [&](uint32_t shard, std::span<const base::Key> block,
                                           std::span<const float> values) { return to.Load(shard, block, values); });
}

}  // namespace regatta::checkpoint
