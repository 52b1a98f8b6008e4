// A cut of a model's tables, to be saved while training goes on.
// Thread-safety: Begin and Complete belong to who runs the job, Contents and the save to one other thread meanwhile.
// Pushes, pulls and loads go on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "table/checkpoint/checkpoint_reader.h"
#include "table/checkpoint/save_contents.h"
#include "table/dense_table.h"

namespace regatta::table {

struct CutOptions {
  uint64_t bound = uint64_t{256} << 20;  // bytes of old rows a table keeps, before pushes wait for the writer
  // What the save is: a server's part (its dense block is filled in from the table), changes since a base.
  std::optional<SavePart> part = {};
  std::optional<SaveBase> base = {};
};

class ModelCut {
 public:
  // Nothing that writes the tables may be under way during this call, which copies the dense parameters and takes time
  // by shards. The tables must outlive the cut. As SparseTable::BeginCut and, with a base, as ForEachCutRow of changes.
  static absl::StatusOr<std::unique_ptr<ModelCut>> Begin(const ModelTables& model, const CutOptions& options);
  // Abandons the cut where it was not completed.
  ~ModelCut();
  ModelCut(const ModelCut&) = delete;
  ModelCut& operator=(const ModelCut&) = delete;

  // All of it but the run, for one WriteCheckpoint: the shards of a cut can be visited once. Counts the rows first.
  absl::StatusOr<SaveContents> Contents();
  // The save is on the disk: the next changes count from this cut on.
  absl::Status Complete();

 private:
  ModelCut(const ModelTables& model, const CutOptions& options);

  const ModelTables model_;
  const CutOptions options_;
  size_t begun_ = 0;  // tables whose cut is in progress
  DenseCopy dense_;
  std::vector<std::unique_ptr<RowSource>> rows_;
};

}  // namespace regatta::table
