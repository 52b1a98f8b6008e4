// Leaf gradients to one gradient a key, dense gradients to pieces of the flattened array: what a step commits.
// Thread-safety: belongs to one thread.
#pragma once

#include <vector>

#include "base/raw_vector.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "model/model.h"
#include "model/tensor.h"
#include "train/plan_queue.h"
#include "train/pull_stage.h"

namespace regatta::train {

class PushStage {
 public:
  PushStage(const model::ModelSpec& spec, comm::Communicator& communicator, int thread, double clip_by_norm,
            metrics::Tracer* tracer);

  absl::Status Run(const PlannedBatch& planned, const PullStage& pulled, uint64_t step);
  // That the last commit took.
  double seconds() const { return seconds_; }
  // Gradients of the last step with NaN or Inf. What becomes of them the mode decides, by its NanPolicy.
  uint64_t bad_rows() const { return bad_rows_; }
  bool bad_dense() const { return bad_dense_; }

 private:
  void Merge(const PlannedBatch& planned, const PullStage& pulled);
  void CountBad();
  void CollectDense(const PullStage& pulled, uint32_t samples);

  const model::ModelSpec& spec_;
  comm::Communicator& communicator_;
  const int thread_;
  const double clip_by_norm_;
  metrics::Tracer* const tracer_;
  std::vector<torch::Tensor> held_;             // gradients that the views below point into
  std::vector<base::RawVector<float>> merged_;  // one gradient a key, a table each
  std::vector<base::TableGrads> tables_;
  std::vector<base::DenseGrad> dense_;
  double seconds_ = 0;
  uint64_t bad_rows_ = 0;
  bool bad_dense_ = false;
};

}  // namespace regatta::train
