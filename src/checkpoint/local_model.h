// The tables of this process as a model that can be saved and filled.
// Thread-safety: as ModelStore.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/model_store.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::checkpoint {

// The tables of a model, to be saved. No push may run while they are.
struct ModelView {
  std::vector<const table::SparseTable*> sparse;
  const table::DenseTable* dense = nullptr;
};

// What a save needs of live tables; `rows` keeps what it points to.
SaveContents ContentsOf(const ModelView& model, std::vector<std::unique_ptr<RowSource>>& rows);

// As WriteCheckpoint of checkpoint_writer.h.
absl::Status WriteCheckpoint(const std::string& folder, const ModelView& model, const RunState& run);

class LocalModel final : public ModelStore {
 public:
  explicit LocalModel(const ModelTables& tables) : tables_(tables) {}

  absl::StatusOr<SaveContents> Contents() override;
  absl::Status LoadFrom(const CheckpointReader& reader, LoadKind kind) override;
  absl::Status FillDense(std::span<const float> values) override;
  absl::Status FillRows(size_t table, std::span<const base::Key> keys, std::span<const float> weights) override;

 private:
  const ModelTables tables_;
  std::vector<std::unique_ptr<RowSource>> rows_;
};

}  // namespace regatta::checkpoint
