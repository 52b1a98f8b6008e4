#include "train/step_runner.h"

#include <cmath>
#include <utility>
#include <vector>

#include "train/pull_stage.h"
#include "train/push_stage.h"
#include "train/stepper.h"

namespace regatta::train {

using base::TensorView;

class StepRunner::Impl {
 public:
  Impl(CheckedNet net, comm::Communicator& communicator, const StepOptions& options)
      : net_(std::move(net)),
        tracer_(options.tracer),
        layout_(net_.spec()),
        stepper_(communicator, options.thread, Stepper::Pulls::kOne, options.tracer),
        pull_(net_.spec(), layout_, stepper_, options.tracer),
        push_(net_.spec(), layout_, stepper_, options.clip_by_norm, options.tracer) {}

  const LookupLayout& layout() const { return layout_; }

  absl::Status Prefetch(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
    return pull_.Prefetch(planned, PlaceOf(*planned.batch, kind, step));
  }

  absl::StatusOr<StepResult> Run(const PlannedBatch& planned, base::StepKind kind, uint64_t step) {
    const data::Batch& batch = *planned.batch;
    RETURN_IF_ERROR(CheckLabels(batch, kind));
    stepper_.BeginStep(PlaceOf(batch, kind, step));
    RETURN_IF_ERROR(pull_.Run(planned));
    result_ = StepResult();
    result_.batch = &batch;
    result_.pull_seconds = stepper_.pull_seconds();
    const NetInput in{.kind = kind,
                      .lookups = pull_.lookups(),
                      .offsets = pull_.offsets(),
                      .parameters = pull_.parameters(),
                      .features = TensorView::Matrix(batch.dense.data(), batch.size, batch.dense_dim),
                      .labels = LabelsOf(batch)};
    RETURN_IF_ERROR(batch.label_dim == 0 ? Predict(batch, in) : Forward(batch, in));
    if (kind == base::StepKind::kInfer) return result_;
    ASSIGN_OR_RETURN(const NetGrads grads, Backward(batch, in));
    RETURN_IF_ERROR(push_.Run(planned, pull_, grads));
    result_.commit_seconds = stepper_.commit_seconds();
    result_.bad_rows = stepper_.bad_rows();
    result_.bad_dense = stepper_.bad_dense();
    return result_;
  }

 private:
  // A data set may be a user's: labels of another number would be read past their end.
  absl::Status CheckLabels(const data::Batch& batch, base::StepKind kind) const {
    const size_t want = net_.spec().schema.labels.size(), have = static_cast<size_t>(batch.label_dim);
    const bool may_lack = kind == base::StepKind::kInfer && have == 0;
    if ((have == want || may_lack) && batch.labels.size() == static_cast<size_t>(batch.size) * have)
      return absl::OkStatus();
    return OfBatch(batch, absl::InvalidArgumentError(absl::StrCat("it has ", batch.labels.size(), " labels, ", have,
                                                                  " for each of ", batch.size, " samples; the model ",
                                                                  net_.spec().name, " reads ", want)));
  }

  static TensorView LabelsOf(const data::Batch& batch) {
    if (batch.label_dim == 0) return {};
    return batch.label_dim == 1 ? TensorView::Vector(batch.labels.data(), batch.size)
                                : TensorView::Matrix(batch.labels.data(), batch.size, batch.label_dim);
  }

  absl::Status Predict(const data::Batch& batch, const NetInput& in) {
    metrics::TraceSpan span(tracer_, "forward");
    const auto predictions = net_.Predict(in);
    if (!predictions.ok()) return OfBatch(batch, predictions.status());
    result_.predictions = *predictions;
    return CheckPredictions(batch);
  }

  // DATA_LOSS if the loss is not finite.
  absl::Status Forward(const data::Batch& batch, const NetInput& in) {
    metrics::TraceSpan span(tracer_, "forward");
    const auto output = net_.Forward(in);
    if (!output.ok()) return OfBatch(batch, output.status());
    const std::span<const float> loss = output->loss.floats();
    result_.predictions = output->predictions;
    for (size_t i = 0; i < loss.size(); ++i) {
      const float weight = batch.weights.empty() ? 1 : batch.weights[i];
      result_.loss_sum += double{loss[i]} * weight;
      result_.weight_sum += weight;
    }
    if (!std::isfinite(result_.loss_sum))
      return absl::DataLossError(absl::StrCat("the loss of batch ", batch.index, " is ", result_.loss_sum));
    return CheckPredictions(batch);
  }

  // Probabilities from 0 to 1, estimates that are finite.
  absl::Status CheckPredictions(const data::Batch& batch) const {
    const std::vector<OutputSpec>& outputs = net_.spec().outputs;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const bool binary = outputs[k].metric == Metric::kBinary;
      const std::span<const float> values = result_.predictions[k].floats();
      for (size_t i = 0; i < values.size(); ++i) {
        const float p = values[i];
        if (binary ? p >= 0 && p <= 1 : std::isfinite(p)) continue;
        return OfBatch(batch, absl::InvalidArgumentError(absl::StrCat(
                                  "the model ", net_.spec().name, ": its prediction ",
                                  outputs.size() == 1 ? "" : absl::StrCat("'", outputs[k].name, "' "), "for sample ", i,
                                  " is ", p, "; it must be ", binary ? "a probability from 0 to 1" : "finite")));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<NetGrads> Backward(const data::Batch& batch, const NetInput& in) {
    metrics::TraceSpan span(tracer_, "backward");
    const auto samples = static_cast<size_t>(batch.size);
    if (batch.weights.empty() && ones_.size() < samples) ones_.resize(samples, 1.0f);
    const float* const weights = batch.weights.empty() ? ones_.data() : batch.weights.data();
    auto grads = net_.Backward(in, TensorView::Vector(weights, batch.size));
    if (!grads.ok()) return OfBatch(batch, grads.status());
    return grads;
  }

  static StepPlace PlaceOf(const data::Batch& batch, base::StepKind kind, uint64_t step) {
    return {.kind = kind, .step = step, .pass = batch.pass, .batch = batch.index};
  }

  static absl::Status OfBatch(const data::Batch& batch, const absl::Status& status) {
    return base::Annotate(status, absl::StrCat("batch ", batch.index));
  }

  CheckedNet net_;
  metrics::Tracer* const tracer_;
  const LookupLayout layout_;
  Stepper stepper_;
  PullStage pull_;
  PushStage push_;
  std::vector<float> ones_;  // the weights of samples that have none
  StepResult result_;
};

StepRunner::StepRunner(CheckedNet net, comm::Communicator& communicator, const StepOptions& options)
    : impl_(std::make_unique<Impl>(std::move(net), communicator, options)) {}
StepRunner::~StepRunner() = default;

const LookupLayout& StepRunner::layout() const { return impl_->layout(); }

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
