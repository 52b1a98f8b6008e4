// The cross network of DCN with the weight vector shared by its layers, as PaddleRec has it:
// x' = x0 · (x · w) + b + x.
#pragma once

#include "model/model.h"
#include "model/tensor.h"

namespace regatta::model {

class Cross {
 public:
  Cross(ModelSpec& spec, int64_t width, int layers, double deviation);

  struct Result {
    torch::Tensor x;        // [samples, width]
    torch::Tensor penalty;  // Σ over layers and columns of (x · w)²: [samples]
  };
  Result operator()(const Input& in, const torch::Tensor& x0) const;

 private:
  int layers_, weight_, bias_;
};

}  // namespace regatta::model
