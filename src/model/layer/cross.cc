#include "model/layer/cross.h"

namespace regatta::model {

Cross::Cross(ModelSpec& spec, int64_t width, int layers, double deviation) : layers_(layers) {
  weight_ = spec.AddDense("cross.w", {width}, Init::Normal(deviation));
  bias_ = spec.AddDense("cross.b", {width}, Init::Normal(deviation));
}

Cross::Result Cross::operator()(const Input& in, const torch::Tensor& x0) const {
  torch::Tensor x = x0, penalty = torch::zeros({x0.size(0)});
  for (int i = 0; i < layers_; ++i) {
    const torch::Tensor weighted = x * in.dense[weight_];
    penalty = penalty + weighted.square().sum(1);
    x = x0 * weighted.sum(1, /*keepdim=*/true) + in.dense[bias_] + x;
  }
  return {x, penalty};
}

}  // namespace regatta::model
