// One training thread's walk of a batch: pull, gather, forward, backward, merge, commit. Holds the net and the buffers
// that the walk reuses from step to step.
// Thread-safety: belongs to one thread.
#pragma once

#include <memory>

#include "base/status.h"
#include "base/step.h"
#include "comm/communicator.h"
#include "metrics/trace.h"
#include "train/checked_net.h"
#include "train/lookup_layout.h"
#include "train/net.h"
#include "train/plan_queue.h"

namespace regatta::train {

struct StepOptions {
  int thread = 0;
  double clip_by_norm = 0;  // bound on the norm of the mean dense gradient; 0 = none
  metrics::Tracer* tracer = nullptr;
};

// What came of a step; the spans live until the thread's next step.
struct StepResult {
  const data::Batch* batch = nullptr;
  Predictions predictions;    // of each output
  double loss_sum = 0;        // over the samples, each times its weight; 0 if labels were not read
  double weight_sum = 0;      // samples, or the sum of their weights; the same
  uint64_t bad_rows = 0;      // gradients of rows with NaN or Inf
  bool bad_dense = false;     // the dense gradient has NaN or Inf
  double pull_seconds = 0;    // in the communicator: waiting for rows
  double commit_seconds = 0;  // in the communicator: handing over what was learnt
};

class StepRunner {
 public:
  StepRunner(CheckedNet net, comm::Communicator& communicator, const StepOptions& options);
  ~StepRunner();

  // What batches are planned by.
  const LookupLayout& layout() const;
  // The batch is the thread's next one: its rows may be fetched while the present one is worked on.
  absl::Status Prefetch(const PlannedBatch& planned, base::StepKind kind, uint64_t step);
  // A loss that is not finite is DATA_LOSS: nothing of the step is committed.
  absl::StatusOr<StepResult> Train(const PlannedBatch& planned, uint64_t step);
  // Of a batch without labels the predictions alone.
  absl::StatusOr<StepResult> Infer(const PlannedBatch& planned, uint64_t step);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::train
