// Rows and dense parameters of a job's tables, wherever they live: in this process (local_client) or on servers.
// Thread-safety: all methods are concurrent; the memory that a call is given belongs to it until it returns.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/step.h"

namespace regatta::client {

class PsClient {
 public:
  virtual ~PsClient() = default;

  virtual int sparse_tables() const = 0;
  virtual int pull_width(int table) const = 0;
  virtual int64_t dense_size() const = 0;

  // out.row(i) = the row of keys.keys[i], pull_width floats.
  virtual absl::Status PullRows(const base::TableKeys& keys, base::StepKind kind, base::RowsView<float> out) = 0;
  // A consistent copy of all dense parameters.
  virtual absl::Status PullDense(std::span<float> out) = 0;
  // Afterwards the step is applied to every table once.
  virtual absl::Status Push(const base::StepGrads& grads) = 0;
};

}  // namespace regatta::client
