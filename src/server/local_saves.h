// The checkpoints that a server keeps of its own part of the model, under its data_dir:
//   <data_dir>/checkpoint/<number>/   complete ones only; the newest has the largest number. One is whole, or holds
//   what
//                                     has changed since the one before it
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/model_snapshot.h"
#include "server/table_share.h"
#include "wire/ps.pb.h"

namespace regatta::server {

class LocalSaves {
 public:
  explicit LocalSaves(const std::string& data_dir) : folder_(data_dir + "/checkpoint") {}

  struct Kept {
    uint64_t number = 0;
    ps::ServerState state;
    bool whole = true;
  };
  // Complete ones, oldest first; what an interrupted writer left is removed. INVALID_ARGUMENT, and nothing is touched,
  // where their folder or one of them is a symbolic link.
  absl::StatusOr<std::vector<Kept>> List() const;

  struct Loaded {
    std::unique_ptr<TableShare> tables;
    ps::ServerState state;
  };
  // The newest that can be read, tables and all; nothing where there is none. Newer ones that are damaged are removed
  // with a warning, when an older one is found whole: nobody may count on them.
  absl::StatusOr<std::optional<Loaded>> LoadNewest(const table::ModelConfig& configs, const ServerPlace& place) const;

  absl::Status Write(uint64_t number, checkpoint::ModelSnapshot& snapshot, const ps::ServerState& state) const;
  // What a save of changes since this one names.
  absl::StatusOr<checkpoint::SaveBase> BaseOf(uint64_t number) const { return checkpoint::BaseAt(FolderOf(number)); }
  absl::Status Remove(uint64_t number) const;
  absl::Status RemoveAll() const;

 private:
  std::string FolderOf(uint64_t number) const;
  absl::StatusOr<Kept> Read(uint64_t number) const;

  const std::string folder_;
};

}  // namespace regatta::server
