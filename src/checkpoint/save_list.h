// The saves under a root, as a reader finds them. Takes no lock: a run may be going on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/run_state.h"

namespace regatta::checkpoint {

struct SaveInfo {
  std::string name;  // "3", "checkpoint/3-200"; "." for a path that is a save itself
  std::string folder;
  absl::Status status;  // of its manifest and the sizes of its files
  RunState run;         // without blobs
  uint64_t rows = 0;    // that it holds itself; of an incremental save those that changed
  uint64_t bytes = 0;   // as rows
  std::string base;     // of an incremental save
  uint32_t parts = 1;   // of servers, that it was saved in
  bool current = false;
  bool best = false;
  bool earlier_run = false;  // left by a run before the one that CURRENT is of
};

// By progress of training, oldest first; damaged ones first of all.
std::vector<SaveInfo> ListSaves(const std::string& root);

// The folder of one save: `path` itself, or what CURRENT names where it is a root.
absl::StatusOr<std::string> ResolveSave(const std::string& path);

}  // namespace regatta::checkpoint
