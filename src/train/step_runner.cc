#include "train/step_runner.h"

#include <cmath>

#include "train/pull_stage.h"
#include "train/push_stage.h"

namespace regatta::train {

class StepRunner::Impl {
 public:
  Impl(const model::Model& model, comm::Communicator& communicator, const StepOptions& options)
      : model_(model),
        tracer_(options.tracer),
        pull_(model.spec(), communicator, options.thread, options.tracer),
        push_(model.spec(), communicator, options.thread, options.clip_by_norm, options.tracer) {}

  absl::Status Prefetch(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
    return pull_.Prefetch(planned, kind, step);
  }

  absl::StatusOr<StepResult> Run(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
    const bool training = kind == base::StepKind::kTrain;
    torch::AutoGradMode grad_mode(training);
    RETURN_IF_ERROR(pull_.Run(planned, kind, step));
    result_.pull_seconds = pull_.seconds();
    result_.commit_seconds = 0;
    try {
      const torch::Tensor total = Forward(*planned.batch);
      if (!std::isfinite(result_.loss_sum))
        return absl::DataLossError(absl::StrCat("the loss of batch ", planned.batch->index, " is ", result_.loss_sum));
      if (!training) return result_;
      metrics::TraceSpan span(tracer_, "backward");
      total.backward();
    } catch (const std::exception& e) {
      return absl::InternalError(absl::StrCat("batch ", planned.batch->index, ": the model failed: ", e.what()));
    }
    RETURN_IF_ERROR(push_.Run(planned, pull_, step));
    result_.commit_seconds = push_.seconds();
    return result_;
  }

 private:
  torch::Tensor Forward(const data::Batch& batch) {
    metrics::TraceSpan span(tracer_, "forward");
    const auto view = [](const std::vector<float>& values, at::IntArrayRef shape) {
      return torch::from_blob(const_cast<float*>(values.data()), shape);
    };
    const model::Output output = model_.Forward({.embeddings = pull_.leaves(),
                                                 .dense = pull_.parameters(),
                                                 .features = view(batch.dense, {batch.size, batch.dense_dim}),
                                                 .labels = view(batch.labels, {batch.size})});
    torch::Tensor loss = output.loss;
    result_.weight_sum = batch.size;
    if (!batch.weights.empty()) {
      const torch::Tensor weights = view(batch.weights, {batch.size});
      loss = loss * weights;
      result_.weight_sum = weights.sum().item<double>();
    }
    const torch::Tensor total = loss.sum();
    predictions_ = output.predictions.contiguous();
    result_.batch = &batch;
    result_.predictions = {predictions_.data_ptr<float>(), static_cast<size_t>(predictions_.numel())};
    result_.loss_sum = total.item<double>();
    return total;
  }

  const model::Model& model_;
  metrics::Tracer* const tracer_;
  PullStage pull_;
  PushStage push_;
  torch::Tensor predictions_;
  StepResult result_;
};

StepRunner::StepRunner(const model::Model& model, comm::Communicator& communicator, const StepOptions& options)
    : impl_(std::make_unique<Impl>(model, communicator, options)) {}
StepRunner::~StepRunner() = default;

absl::Status StepRunner::Prefetch(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
  return impl_->Prefetch(planned, kind, step);
}

absl::StatusOr<StepResult> StepRunner::Train(const PlannedBatch& planned, uint64_t step) {
  return impl_->Run(planned, base::StepKind::kTrain, step);
}

absl::StatusOr<StepResult> StepRunner::Infer(const PlannedBatch& planned, uint64_t step) {
  return impl_->Run(planned, base::StepKind::kInfer, step);
}

}  // namespace regatta::train
