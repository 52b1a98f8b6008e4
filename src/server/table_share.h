// A server's share of a model's tables: its range of virtual shards of every sparse table, its block of the dense
// parameters.
// Thread-safety: the tables are concurrent; LoadFrom comes before anybody uses them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"
#include "table/table_config.h"

namespace regatta::server {

// Which of a job's servers.
struct ServerPlace {
  int server = 0;
  int servers = 1;
  friend bool operator==(const ServerPlace&, const ServerPlace&) = default;
};

// What a share was loaded from.
struct LoadedFrom {
  uint64_t epochs = 0;    // that training had finished
  uint64_t steps = 0;     // that it had made
  uint64_t identity = 0;  // a hash of the manifest: copies of one save have the same
};

class TableShare {
 public:
  // Empty tables, at their initial values.
  static absl::StatusOr<std::unique_ptr<TableShare>> Create(const table::ModelConfig& configs,
                                                            const ServerPlace& place);
  // Whether there is a save at `path` that can be opened.
  static absl::Status CheckSave(const std::string& path);
  // Tables as a save has them, filled from it: for a server that starts before it has heard of a job.
  static absl::StatusOr<std::unique_ptr<TableShare>> CreateFrom(const std::string& path, const ServerPlace& place);

  const table::ModelConfig& configs() const { return configs_; }
  const ServerPlace& place() const { return place_; }
  checkpoint::ModelTables view() const;
  int sparse_tables() const { return static_cast<int>(sparse_.size()); }
  table::SparseTable& sparse(int i) const { return *sparse_[static_cast<size_t>(i)]; }
  table::DenseTable& dense() const { return *dense_; }
  uint64_t rows() const;
  const std::optional<LoadedFrom>& loaded() const { return loaded_; }

  // Fills the share from a save of any number of servers. FAILED_PRECONDITION names every field in which they differ.
  absl::Status LoadFrom(const std::string& path);
  // From a save of this share alone.
  absl::Status LoadPart(const std::string& folder);
  void SetLoaded(const LoadedFrom& loaded) { loaded_ = loaded; }

 private:
  absl::Status Fill(const checkpoint::CheckpointReader& reader);
  TableShare(const table::ModelConfig& configs, const ServerPlace& place) : configs_(configs), place_(place) {}

  const table::ModelConfig configs_;
  const ServerPlace place_;
  std::vector<std::unique_ptr<table::SparseTable>> sparse_;
  std::unique_ptr<table::DenseTable> dense_;
  std::optional<LoadedFrom> loaded_;
};

}  // namespace regatta::server
