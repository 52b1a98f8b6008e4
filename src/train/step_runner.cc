#include "train/step_runner.h"

#include <cmath>
#include <exception>
#include <string>

#include "absl/strings/str_join.h"
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

  // Nothing that a model or torch throws gets farther than this.
  absl::StatusOr<StepResult> Run(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
    std::string thrown;
    try {
      return Walk(planned, kind, step);
    } catch (const c10::Error& e) {
      thrown = e.what_without_backtrace();
    } catch (const std::exception& e) {
      thrown = e.what();
    } catch (...) {
      thrown = "it threw something that is no std::exception";
    }
    return absl::InternalError(absl::StrCat("batch ", planned.batch->index, ": the model failed: ", thrown));
  }

 private:
  absl::StatusOr<StepResult> Walk(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
    const bool training = kind == base::StepKind::kTrain;
    torch::AutoGradMode grad_mode(training);
    RETURN_IF_ERROR(pull_.Run(planned, kind, step));
    result_.pull_seconds = pull_.seconds();
    result_.commit_seconds = 0;
    result_.bad_rows = 0;
    result_.bad_dense = false;
    ASSIGN_OR_RETURN(const torch::Tensor total, Forward(*planned.batch));
    if (!training) return result_;
    {
      metrics::TraceSpan span(tracer_, "backward");
      total.backward();
    }
    RETURN_IF_ERROR(push_.Run(planned, pull_, step));
    result_.commit_seconds = push_.seconds();
    result_.bad_rows = push_.bad_rows();
    result_.bad_dense = push_.bad_dense();
    return result_;
  }

  // The sum of the loss. DATA_LOSS where it is not finite.
  absl::StatusOr<torch::Tensor> Forward(const data::Batch& batch) {
    metrics::TraceSpan span(tracer_, "forward");
    const auto view = [](const std::vector<float>& values, at::IntArrayRef shape) {
      return torch::from_blob(const_cast<float*>(values.data()), shape);
    };
    const model::Output output = model_.Forward({.embeddings = pull_.leaves(),
                                                 .dense = pull_.parameters(),
                                                 .features = view(batch.dense, {batch.size, batch.dense_dim}),
                                                 .labels = view(batch.labels, {batch.size})});
    RETURN_IF_ERROR(CheckOnePerSample("loss", output.loss, batch));
    RETURN_IF_ERROR(CheckOnePerSample("prediction", output.predictions, batch));
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
    if (!std::isfinite(result_.loss_sum))
      return absl::DataLossError(absl::StrCat("the loss of batch ", batch.index, " is ", result_.loss_sum));
    for (int i = 0; i < batch.size; ++i)
      if (const float p = result_.predictions[static_cast<size_t>(i)]; !(p >= 0 && p <= 1))
        return absl::InvalidArgumentError(absl::StrCat("batch ", batch.index, ": the model's prediction for sample ", i,
                                                       " is ", p, "; it must be a probability from 0 to 1"));
    return total;
  }

  // What a model returns is a user's: a tensor of another shape would be read past its end, or broadcast.
  static absl::Status CheckOnePerSample(const char* what, const torch::Tensor& tensor, const data::Batch& batch) {
    const std::string wanted = absl::StrCat("it must have the shape [", batch.size, "], one value for each sample");
    const std::string named = absl::StrCat("batch ", batch.index, ": the model's ", what);
    if (!tensor.defined()) return absl::InvalidArgumentError(absl::StrCat(named, " is not set; ", wanted));
    if (tensor.dim() != 1 || tensor.numel() != batch.size)
      return absl::InvalidArgumentError(
          absl::StrCat(named, " has the shape [", absl::StrJoin(tensor.sizes(), ", "), "]; ", wanted));
    if (tensor.scalar_type() != torch::kFloat32)
      return absl::InvalidArgumentError(
          absl::StrCat(named, " has the type ", c10::toString(tensor.scalar_type()), "; it must be Float"));
    return absl::OkStatus();
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
