// The factorisation machine's terms over sparse slots and dense features, as PaddleRec's fm and deepfm have them:
// a weight and a vector per id, a weight and a vector per dense feature. All start small; PaddleRec starts the dense
// features' at 1, which gives features above 1 logits of tens and training a bad start.
#pragma once

#include <string>

#include "model/model.h"
#include "model/tensor.h"

namespace regatta::model {

class Fm {
 public:
  Fm(ModelSpec& spec, int dim);

  // [samples, slots + dense_dim, dim]: every field's vector.
  torch::Tensor Fields(const Input& in) const;
  // Σ weights + ½ Σ ((Σ fields)² − Σ fields²): [samples].
  torch::Tensor Logit(const Input& in, const torch::Tensor& fields) const;
  int64_t field_width() const { return fields_ * dim_; }

 private:
  int64_t dim_, fields_, slots_;
  int weight_, vector_;
  int dense_weight_ = -1, dense_vector_ = -1;  // -1 where there are no dense features
};

}  // namespace regatta::model
