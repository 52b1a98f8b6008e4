#include "model/model.h"

#include <c10/util/Exception.h>

#include <vector>

namespace regatta::model {
namespace {

torch::Tensor OnePerSample(const torch::Tensor& values) { return values.dim() == 2 ? values.squeeze(1) : values; }

}  // namespace

torch::Tensor Input::label(int64_t place) const {
  if (!labels.defined()) return {};
  if (labels.dim() == 2) return labels.select(1, place);
  TORCH_CHECK(place == 0, "there is one label, and label(", place, ") is asked for");
  return labels;
}

Output BinaryOutput(const torch::Tensor& logits, const torch::Tensor& labels) {
  const torch::Tensor logit = OnePerSample(logits);
  Output out{.loss = {}, .predictions = torch::sigmoid(logit.detach())};
  if (labels.defined()) out.loss = torch::binary_cross_entropy_with_logits(logit, labels, {}, {}, at::Reduction::None);
  return out;
}

Output RegressionOutput(const torch::Tensor& estimates, const torch::Tensor& labels) {
  const torch::Tensor estimate = OnePerSample(estimates);
  Output out{.loss = {}, .predictions = estimate.detach()};
  if (labels.defined()) out.loss = (estimate - labels).square();
  return out;
}

Output Joined(std::initializer_list<Output> outputs, std::initializer_list<double> weights) {
  TORCH_CHECK(weights.size() == 0 || weights.size() == outputs.size(), "Joined has ", outputs.size(), " outputs and ",
              weights.size(), " weights");
  Output out;
  std::vector<torch::Tensor> predictions;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Output& one = outputs.begin()[i];
    predictions.push_back(one.predictions);
    if (!one.loss.defined()) continue;
    const torch::Tensor loss = weights.size() == 0 ? one.loss : one.loss * weights.begin()[i];
    out.loss = out.loss.defined() ? out.loss + loss : loss;
  }
  out.predictions = torch::stack(predictions, 1);
  return out;
}

}  // namespace regatta::model
