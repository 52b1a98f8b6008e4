// Rows of a batch's keys to the matrices that a net reads.
// Thread-safety: belongs to one thread.
#pragma once

#include <vector>

#include "base/raw_vector.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "metrics/trace.h"
#include "train/lookup_layout.h"
#include "train/net_spec.h"
#include "train/plan_queue.h"
#include "train/stepper.h"

namespace regatta::train {

class PullStage {
 public:
  PullStage(const NetSpec& spec, const LookupLayout& layout, Stepper& stepper, metrics::Tracer* tracer);

  // The batch is this thread's next one.
  absl::Status Prefetch(const PlannedBatch& planned, const StepPlace& place);
  // The stepper has begun the step. Afterwards lookups() and parameters() view the step's values, until the step
  // commits.
  absl::Status Run(const PlannedBatch& planned);

  std::span<const base::TensorView> lookups() const { return lookups_; }
  // Of each lookup without pooling; of the others an empty view.
  std::span<const base::TensorView> offsets() const { return offset_views_; }
  std::span<const base::TensorView> parameters() const { return parameters_; }
  // The rows that were pulled, a table each; valid until the step commits.
  std::span<const base::RowsView<const float>> rows() const { return rows_; }
  std::span<const int64_t> parameter_offsets() const { return parameter_offsets_; }

 private:
  std::span<const base::TableKeys> KeysOf(const PlannedBatch& planned);
  absl::Status CheckWidths();
  void Fill(size_t lookup, const PlannedBatch& planned);
  void FillRows(size_t lookup, const lookup::KeyPlan& plan, int samples);
  float* Room(size_t lookup, int64_t floats);
  absl::Status Bind(std::span<const float> dense);

  const NetSpec& spec_;
  const LookupLayout& layout_;
  Stepper& stepper_;
  metrics::Tracer* const tracer_;
  bool checked_ = false;                    // the tables' widths
  std::vector<int64_t> parameter_offsets_;  // in the flattened dense array
  int64_t dense_size_ = 0;
  std::vector<base::TableKeys> keys_;
  std::span<const base::RowsView<const float>> rows_;
  std::vector<base::RawVector<float>> buffers_;  // of the largest batch so far
  std::vector<std::vector<int64_t>> offsets_;    // of lookups without pooling
  std::vector<base::TensorView> lookups_;
  std::vector<base::TensorView> offset_views_;
  std::vector<base::TensorView> parameters_;
};

}  // namespace regatta::train
