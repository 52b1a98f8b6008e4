#include "model/model.h"

namespace regatta::model {

Output BinaryOutput(const torch::Tensor& logits, const torch::Tensor& labels) {
  const torch::Tensor logit = logits.dim() == 2 ? logits.squeeze(1) : logits;
  return {torch::binary_cross_entropy_with_logits(logit, labels, {}, {}, at::Reduction::None),
          torch::sigmoid(logit.detach())};
}

}  // namespace regatta::model
