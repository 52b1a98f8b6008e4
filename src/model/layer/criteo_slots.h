// The inputs that the rank models share: a label, N sparse slots named 1 … N, and dense features.
#pragma once

#include "base/model_params.h"
#include "model/spec.h"

namespace regatta::model {

// Reads sparse_inputs_slots (the label counts as one) and dense_input_dim.
inline void DeclareCriteoSlots(base::ModelParams& params, ModelSpec& spec) {
  const int64_t slots = params.Int("sparse_inputs_slots", 27, {2, 10'000}) - 1;
  for (int64_t slot = 1; slot <= slots; ++slot) spec.schema.sparse_slots.push_back(std::to_string(slot));
  spec.schema.dense_dim = static_cast<int>(params.Int("dense_input_dim", 13, {0, 100'000}));
}

inline int EmbeddingDim(base::ModelParams& params) {
  return static_cast<int>(params.Int("sparse_feature_dim", 9, {1, 4096}));
}

inline std::vector<int64_t> FcSizes(base::ModelParams& params) {
  return params.IntList("fc_sizes", {512, 256, 128, 32}, {1, 65'536});
}

}  // namespace regatta::model
