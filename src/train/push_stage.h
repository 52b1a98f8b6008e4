// Gradients of a net's inputs to one gradient a key and to pieces of the flattened dense array: what a step commits.
// Thread-safety: belongs to one thread.
#pragma once

#include <vector>

#include "base/raw_vector.h"
#include "base/status.h"
#include "lookup/chosen_slots.h"
#include "metrics/trace.h"
#include "train/lookup_layout.h"
#include "train/net.h"
#include "train/plan_queue.h"
#include "train/pull_stage.h"
#include "train/stepper.h"

namespace regatta::train {

class PushStage {
 public:
  PushStage(const NetSpec& spec, const LookupLayout& layout, Stepper& stepper, double clip_by_norm,
            metrics::Tracer* tracer);

  // `grads` have the shapes of what was pulled, by the same net: a key's gradient is as wide as the net's rows.
  absl::Status Run(const PlannedBatch& planned, const PullStage& pulled, const NetGrads& grads);

 private:
  absl::Status CheckWidths();
  void Merge(const PlannedBatch& planned, const PullStage& pulled, const NetGrads& grads);
  void AddLookup(size_t lookup, const PlannedBatch& planned, const base::TensorView& grad, lookup::Onto onto);
  void CollectDense(const PullStage& pulled, const NetGrads& grads);
  void ClipDense(uint32_t samples);

  const NetSpec& spec_;
  const LookupLayout& layout_;
  Stepper& stepper_;
  const double clip_by_norm_;
  metrics::Tracer* const tracer_;
  bool checked_ = false;                        // the tables' widths
  std::vector<float> zeros_;                    // the gradient of a parameter that the loss does not depend on
  base::RawVector<float> clipped_;              // the dense gradients of a step that was clipped
  std::vector<base::RawVector<float>> merged_;  // one gradient a key, a table each
  std::vector<base::TableGrads> tables_;
  std::vector<base::DenseGrad> dense_;
};

}  // namespace regatta::train
