// Reads a checkpoint: its manifest at once, everything else as it is asked for. Every length and checksum is looked at
// before the bytes behind it are used; DATA_LOSS names the file and byte. A save that was written in parts by several
// servers, or as changes since a base, is shown as the whole that they make.
// Thread-safety: concurrent.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "checkpoint/data_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/model_tables.h"
#include "checkpoint/row_cursor.h"
#include "checkpoint/run_state.h"
#include "checkpoint/save_layer.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::checkpoint {

class CheckpointReader {
 public:
  // Reads the manifest (of an incremental save also those of its base and so on; of a folder that holds part-000,
  // part-001, … those of all of them) and checks that the files are there with their sizes. DATA_LOSS names the folder
  // where a base is missing or another one, or where the parts are not those of one snapshot. A part alone is refused.
  static absl::StatusOr<CheckpointReader> Open(const std::string& folder);
  // The parts of one snapshot, in any order, wherever they are.
  static absl::StatusOr<CheckpointReader> OpenParts(const std::vector<std::string>& folders);
  // As Open, and a part alone too: to look at, not to fill a model from.
  static absl::StatusOr<CheckpointReader> OpenPart(const std::string& folder);

  const std::string& folder() const { return folder_; }
  // Of several saves, what they hold together: `rows` and extents count a row once for each save of a chain that has
  // it; `part` is set for a part alone; run, updates and base are those of the newest save (of part 0).
  const Manifest& manifest() const { return *manifest_; }
  // The saves that are read, bases first.
  std::span<const SaveLayer> layers() const { return *layers_; }
  // The state of the run with its blobs.
  absl::StatusOr<RunState> ReadRunState() const;

  // Clears the tables and fills them. FAILED_PRECONDITION tells every field in which the schemas differ, and nothing
  // has been touched; after any other error the sparse tables are empty and the dense one is as before.
  absl::Status LoadInto(const ModelTables& model, LoadKind kind) const;

  // Reads everything. Every damaged place found (at most one an extent); empty = whole. `progress` gets bytes done and
  // of how many; it may be called from several threads, one at a time.
  using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;
  std::vector<absl::Status> Verify(const ProgressFn& progress = nullptr) const;

  // fn(shard, keys, rows) for every block of manifest().sparse[table], keys of one shard ascending, row_width floats a
  // key; stops at the first error.
  using BlockFn = std::function<absl::Status(uint32_t shard, std::span<const base::Key>, std::span<const float>)>;
  absl::Status ForEachBlock(size_t table, const BlockFn& fn) const;

  // All rows of manifest().sparse[table], keys ascending.
  MergedRows Rows(size_t table) const {
    return MergedRows(files_, manifest_->sparse[table].extents, manifest_->sparse[table].row_width);
  }
  // How many they are. Reads the keys of a chain of saves, else nothing.
  absl::StatusOr<uint64_t> CountRows(size_t table) const;
  // The row of a key, NOT_FOUND where the table has none.
  absl::StatusOr<std::vector<float>> FindRow(size_t table, base::Key key) const;
  // Elements [begin, begin + out.size()) of array 0 (the values) or i + 1 (state i) of the dense parameters.
  absl::Status ReadDense(uint32_t array, uint64_t begin, std::span<float> out) const;
  absl::StatusOr<std::string> ReadBlob(std::string_view name) const;

 private:
  CheckpointReader(std::string folder, std::vector<SaveLayer> layers);
  absl::Status LoadSparse(const ModelTables& model, LoadKind kind) const;
  absl::Status LoadDense(table::DenseTable& table, LoadKind kind) const;
  absl::Status MergeBlocks(const SavedSparse& table, std::span<const ShardExtent> extents, const BlockFn& fn) const;

  std::string folder_;
  std::shared_ptr<const std::vector<SaveLayer>> layers_;
  std::shared_ptr<const Manifest> manifest_;  // of all layers; its extents number the files of all
  std::vector<std::shared_ptr<const DataFile>> files_;
};

}  // namespace regatta::checkpoint
