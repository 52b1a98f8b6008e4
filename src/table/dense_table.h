// The dense parameters of a model, flattened into one array, and their optimizer's state.
// Thread-safety: Read, Snapshot and Push are concurrent (one lock); Values is for callers that serialise steps
// themselves (local mode with one thread).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/step.h"
#include "table/sparse_table.h"
#include "table/table_config.h"

namespace regatta::table {

class DenseTable {
 public:
  static absl::StatusOr<std::unique_ptr<DenseTable>> Create(const DenseTableConfig& config);
  virtual ~DenseTable() = default;

  virtual const DenseTableConfig& config() const = 0;
  virtual int64_t size() const = 0;                       // elements of all parameters
  virtual std::span<const int64_t> offsets() const = 0;   // of each parameter, plus size()
  virtual std::span<const float> Values() const = 0;      // live; see thread-safety above
  virtual void Snapshot(std::span<float> out) const = 0;  // a consistent copy
  // One step of the rule over all of `grads`, which must cover every element once: mean = sum / samples.
  virtual absl::Status Push(std::span<const base::DenseGrad> grads, const PushOptions& options) = 0;
  virtual uint64_t updates() const = 0;

  // State vectors of size() floats each (adam: m, v), for saving and loading.
  virtual int state_count() const = 0;
  virtual std::span<const float> State(int i) const = 0;
  virtual absl::Status Load(std::span<const float> values, std::span<const std::vector<float>> states,
                            uint64_t updates) = 0;
};

}  // namespace regatta::table
