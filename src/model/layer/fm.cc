#include "model/layer/fm.h"

#include <cmath>

namespace regatta::model {

Fm::Fm(ModelSpec& spec, int dim) : dim_(dim), fields_(spec.slots() + spec.schema.dense_dim), slots_(spec.slots()) {
  const Init init = Init::Normal(0.1 / std::sqrt(dim));
  weight_ = spec.AddEmbedding({.table = "embedding_one", .dim = 1, .init = init});
  vector_ = spec.AddEmbedding({.table = "embedding", .dim = dim, .init = init});
  if (spec.schema.dense_dim == 0) return;
  dense_weight_ = spec.AddDense("dense_w_one", {spec.schema.dense_dim}, init);
  dense_vector_ = spec.AddDense("dense_w", {1, spec.schema.dense_dim, dim}, init);
}

torch::Tensor Fm::Fields(const Input& in) const {
  const torch::Tensor sparse = in.embeddings[vector_].view({-1, slots_, dim_});
  if (dense_vector_ < 0) return sparse;
  return torch::cat({sparse, in.features.unsqueeze(2) * in.dense[dense_vector_]}, 1);
}

torch::Tensor Fm::Logit(const Input& in, const torch::Tensor& fields) const {
  torch::Tensor first = in.embeddings[weight_].sum(1);
  if (dense_weight_ >= 0) first = first + torch::mv(in.features, in.dense[dense_weight_]);
  const torch::Tensor second = fields.sum(1).square() - fields.square().sum(1);
  return first + 0.5 * second.sum(1);
}

}  // namespace regatta::model
