// Rows of a batch's keys to the leaf tensors that a model reads.
// Thread-safety: belongs to one thread.
#pragma once

#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "model/model.h"
#include "model/tensor.h"
#include "train/plan_queue.h"

namespace regatta::train {

class PullStage {
 public:
  PullStage(const model::ModelSpec& spec, comm::Communicator& communicator, int thread, metrics::Tracer* tracer);

  // The batch is this thread's next one.
  absl::Status Prefetch(const PlannedBatch& planned, base::StepKind kind, uint64_t step);
  // Afterwards leaves() and parameters() hold the step's values and require gradients in training.
  absl::Status Run(const PlannedBatch& planned, base::StepKind kind, uint64_t step);

  // That the last pull took.
  double seconds() const { return seconds_; }
  std::span<const torch::Tensor> leaves() const { return leaves_; }
  std::span<const torch::Tensor> parameters() const { return parameters_; }
  // The rows that were pulled, a table each; valid until the step commits.
  std::span<const base::RowsView<const float>> rows() const { return rows_; }
  std::span<const int64_t> parameter_offsets() const { return offsets_; }

 private:
  base::StepKeys KeysOf(const PlannedBatch& planned, base::StepKind kind, uint64_t step);
  absl::Status Fill(int embedding, const PlannedBatch& planned, base::RowsView<const float> rows);
  void Bind(std::span<const float> dense, base::StepKind kind);

  const model::ModelSpec& spec_;
  comm::Communicator& communicator_;
  const int thread_;
  metrics::Tracer* const tracer_;
  std::vector<int64_t> offsets_;  // of each parameter in the flattened dense array
  std::vector<base::TableKeys> keys_;
  std::span<const base::RowsView<const float>> rows_;
  std::vector<torch::Tensor> buffers_;  // of the largest batch so far; a leaf is its first rows
  std::vector<torch::Tensor> leaves_;
  std::vector<torch::Tensor> parameters_;
  double seconds_ = 0;
  const float* bound_ = nullptr;  // the dense array that parameters_ views
};

}  // namespace regatta::train
