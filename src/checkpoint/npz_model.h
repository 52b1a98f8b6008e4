// A save as an .npz file and back: <table>.keys (uint64), <table>.w (float32 [rows, width]), <table>.state,
// dense.<parameter>, dense.<parameter>.state<i>, updates.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"

namespace regatta::checkpoint {

// Rows by key. Memory does not depend on the size of the save.
absl::Status ExportNpz(const CheckpointReader& save, const std::string& path);

// Writes a save to `folder` with the tables of `like` and the numbers of the .npz, to start a run from. Weights must be
// there; where state is missing it is that of a new row, and `notes` says so. Holds the arrays in memory.
absl::Status ImportNpz(const std::string& path, const CheckpointReader& like, const std::string& folder,
                       std::vector<std::string>& notes);

}  // namespace regatta::checkpoint
