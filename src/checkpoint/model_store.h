// The owner of a model that can be saved and loaded: the tables of this process, or those of servers.
// Thread-safety: one thread; no other thread may push meanwhile.
#pragma once

#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/save_contents.h"

namespace regatta::checkpoint {

class ModelStore {
 public:
  virtual ~ModelStore() = default;
  // All of it but the run. What it points to lives until the next call.
  virtual absl::StatusOr<SaveContents> Contents() = 0;
  // Replaces everything by what a save holds; as CheckpointReader::LoadInto where it does not fit.
  virtual absl::Status LoadFrom(const CheckpointReader& reader, LoadKind kind) = 0;
};

}  // namespace regatta::checkpoint
