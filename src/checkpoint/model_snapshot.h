// A snapshot of a model's tables, to be saved while training goes on.
// Thread-safety: Begin and Complete belong to who runs the job, Contents and the save to one other thread meanwhile.
// Pushes, pulls and loads go on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/save_contents.h"
#include "table/dense_table.h"

namespace regatta::checkpoint {

struct SnapshotOptions {
  uint64_t bound = uint64_t{256} << 20;  // bytes of old rows a table keeps, before pushes wait for the writer
  // What the save is: a server's part (its dense block is filled in from the table), changes since a base.
  std::optional<SavePart> part = {};
  std::optional<SaveBase> base = {};
};

class ModelSnapshot {
 public:
  // Nothing that writes the tables may be under way during this call, which copies the dense parameters and takes time
  // by shards. The tables must outlive the snapshot. As SparseTable::BeginSnapshot and, with a base, as
  // ForEachSnapshotRow of changes.
  static absl::StatusOr<std::unique_ptr<ModelSnapshot>> Begin(const ModelTables& model, const SnapshotOptions& options);
  // Abandons the snapshot where it was not completed.
  ~ModelSnapshot();
  ModelSnapshot(const ModelSnapshot&) = delete;
  ModelSnapshot& operator=(const ModelSnapshot&) = delete;

  // All of it but the run, for one WriteCheckpoint: the shards of a snapshot can be visited once. Counts the rows
  // first.
  absl::StatusOr<SaveContents> Contents();
  // The save is on the disk: the next changes count from this snapshot on.
  absl::Status Complete();

 private:
  ModelSnapshot(const ModelTables& model, const SnapshotOptions& options);

  const ModelTables model_;
  const SnapshotOptions options_;
  size_t begun_ = 0;  // tables whose snapshot is in progress
  table::DenseCopy dense_;
  std::vector<std::unique_ptr<RowSource>> rows_;
};

}  // namespace regatta::checkpoint
