// The inputs that the rank models share: a label, N sparse slots named 1 … N, and dense features.
#pragma once

#include "base/params.h"
#include "model/spec.h"

namespace regatta::model {

// Reads sparse_inputs_slots (the label counts as one) and dense_input_dim.
inline void DeclareCriteoSlots(base::Params& params, ModelSpec& spec) {
  const int slots = static_cast<int>(params.Int("sparse_inputs_slots", {2, 10'000}, 27)) - 1;
  spec.schema = data::CriteoSchema(slots, static_cast<int>(params.Int("dense_input_dim", {0, 100'000}, 13)));
}

inline int EmbeddingDim(base::Params& params) {
  return static_cast<int>(params.Int("sparse_feature_dim", {1, 4096}, 9));
}

// The slots' vectors with the dense features behind them: what a deep network reads.
inline int AddDeepInput(base::Params& params, ModelSpec& spec) {
  return spec.AddEmbedding({.table = "embedding",
                            .dim = EmbeddingDim(params),
                            .init = Init::Uniform(params.Double("embedding_init_range", {0, 10}, 0.05)),
                            .dense_columns = DenseColumns::kAppended});
}

inline std::vector<int64_t> FcSizes(base::Params& params) {
  return params.IntList("fc_sizes", {1, 65'536}, {512, 256, 128, 32});
}

}  // namespace regatta::model
