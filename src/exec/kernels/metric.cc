// Metrics. Their states are changed in place.
#include "exec/kernel_table.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

torch::Tensor Number(double value, torch::ScalarType type) { return at::full({1}, value, type); }

// Indices are the classes with the largest predictions of each sample, k of them.
absl::Status Accuracy(KernelCall& call) {
  const torch::Tensor indices = call.In("Indices").to(torch::kInt64);
  const torch::Tensor label = call.In("Label").to(torch::kInt64).reshape({-1, 1});
  if (label.size(0) != indices.size(0))
    return absl::InvalidArgumentError(absl::StrCat("Label is ", TensorText(call.In("Label")), " and Indices is ",
                                                   TensorText(indices), "; want a label for each sample"));
  const auto total = static_cast<double>(indices.size(0));
  const auto correct = static_cast<double>((indices == label).any(1).sum().item<int64_t>());
  call.SetOut("Accuracy", Number(total > 0 ? correct / total : 0, torch::kFloat32));
  call.SetOut("Correct", Number(correct, torch::kInt32));
  call.SetOut("Total", Number(total, torch::kInt32));
  return absl::OkStatus();
}

// Counts of positive or negative samples by the bin of their prediction: without slide_steps one histogram that grows
// for ever. With them one for each of the last batches, then their sum, then the number of batches so far.
class Histogram {
 public:
  Histogram(torch::Tensor state, int64_t bins, int64_t steps)
      : state_(std::move(state)), counts_(state_.data_ptr<int64_t>()), bins_(bins), steps_(steps) {}

  static int64_t SizeOf(int64_t bins, int64_t steps) { return steps == 0 ? bins : (steps + 1) * bins + 1; }

  // Makes room for a batch: that of `steps` batches ago is forgotten.
  void Begin() {
    if (steps_ == 0) return;
    current_ = counts_ + counts_[(steps_ + 1) * bins_] % steps_ * bins_;
    for (int64_t i = 0; i < bins_; ++i) sum()[i] -= current_[i];
    std::fill_n(current_, bins_, 0);
    ++counts_[(steps_ + 1) * bins_];
  }
  void Add(int64_t bin) {
    ++sum()[bin];
    if (steps_ > 0) ++current_[bin];
  }
  int64_t* sum() { return counts_ + steps_ * bins_; }

 private:
  torch::Tensor state_;
  int64_t* counts_;
  int64_t bins_;
  int64_t steps_;
  int64_t* current_ = nullptr;
};

// The area under the curve of true over false positives; 0 if one of the classes has no sample.
double AreaUnder(const int64_t* positive, const int64_t* negative, int64_t bins) {
  double area = 0, positives = 0, negatives = 0;
  for (int64_t i = bins; i-- > 0;) {
    const auto more_positives = static_cast<double>(positive[i]), more_negatives = static_cast<double>(negative[i]);
    area += more_negatives * (2 * positives + more_positives) / 2;
    positives += more_positives;
    negatives += more_negatives;
  }
  return positives > 0 && negatives > 0 ? area / positives / negatives : 0;
}

absl::Status Auc(KernelCall& call) {
  const int64_t thresholds = call.Int("num_thresholds"), steps = call.Int("slide_steps"), bins = thresholds + 1;
  if (call.String("curve") != "ROC") return absl::UnimplementedError("curve='PR' is not in this version; use 'ROC'");
  const torch::Tensor& given = call.In("Predict");
  const torch::Tensor predict = given.detach().to(torch::kFloat64).select(1, given.size(1) - 1).contiguous();
  const torch::Tensor label = call.In("Label").to(torch::kInt64).reshape({-1}).contiguous();
  for (const char* slot : {"StatPos", "StatNeg"}) {
    const torch::Tensor& state = call.In(slot);
    if (state.scalar_type() == torch::kInt64 && state.numel() >= Histogram::SizeOf(bins, steps)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(slot, " is ", TensorText(state), "; want int64 with ", Histogram::SizeOf(bins, steps), " counts"));
  }
  if (label.numel() != predict.numel())
    return absl::InvalidArgumentError(absl::StrCat("Predict is ", TensorText(given), " and Label is ",
                                                   TensorText(call.In("Label")), "; want a label for each prediction"));
  if (!((predict >= 0) & (predict <= 1)).all().item<bool>())
    return absl::InvalidArgumentError(
        "Predict has values outside 0 … 1; give auc the output of a sigmoid or a softmax");
  Histogram positive(call.Update("StatPos", "StatPosOut"), bins, steps);
  Histogram negative(call.Update("StatNeg", "StatNegOut"), bins, steps);
  positive.Begin();
  negative.Begin();
  for (int64_t i = 0; i < predict.numel(); ++i) {
    const double p = predict.data_ptr<double>()[i];
    const auto bin = static_cast<int64_t>(p * static_cast<double>(thresholds));
    (label.data_ptr<int64_t>()[i] > 0 ? positive : negative).Add(bin);
  }
  call.SetOut("AUC", Number(AreaUnder(positive.sum(), negative.sum(), bins), torch::kFloat64));
  return absl::OkStatus();
}

constexpr KernelRow kMetricKernels[] = {
    {"accuracy", Accuracy},
    {"auc", Auc},
};

}  // namespace

std::span<const KernelRow> MetricKernels() { return kMetricKernels; }

}  // namespace regatta::exec
