// The owner of a model that can be saved and loaded: the tables of this process, or those of servers.
// Thread-safety: one thread; no other thread may push meanwhile.
#pragma once

#include <span>

#include "base/key.h"
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
  // Replaces the dense parameters, all of them; their rule's state begins anew.
  virtual absl::Status FillDense(std::span<const float> values) = 0;
  // Puts rows with these weights (as many floats a key as a pull gives) and a new row's state into a sparse table; rows
  // of other keys stay.
  virtual absl::Status FillRows(size_t table, std::span<const base::Key> keys, std::span<const float> weights) = 0;
};

// For FillDense: INVALID_ARGUMENT unless there are as many values as the model has dense elements.
inline absl::Status CheckDenseSize(size_t values, size_t elements) {
  if (values == elements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(values, " dense values for a model whose dense parameters have ", elements, " elements"));
}

}  // namespace regatta::checkpoint
