// Layers that every network has: data, fc, embedding, sums and means of errors.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "program/program_builder.h"

namespace regatta::program::layers {

struct DataOptions {
  Shape shape = {};  // without the batch, or with -1 for it
  DataType dtype = DataType::kFloat32;
  int lod_level = 0;
  bool append_batch_size = true;  // [-1] before the shape, unless it has an unknown extent; fluid.data: false
  bool stop_gradient = true;
};

// A variable that is fed. Data of that name is returned if it has the same type, shape and levels.
absl::StatusOr<Variable*> Data(ProgramBuilder& builder, const std::string& name, const DataOptions& options);

struct FcOptions {
  int64_t size = 0;
  int64_t num_flatten_dims = 1;                     // extents before it are rows; -1: all but the last
  std::vector<ParameterAttributes> weights = {{}};  // one, or one for each input
  ParameterAttributes bias = {};
  std::string activation = {};
  std::string name = {};
};

// activation(Σ inputs[i] · weights[i] + bias)
absl::StatusOr<Variable*> Fc(ProgramBuilder& builder, const std::vector<Variable*>& inputs, const FcOptions& options);

// kWithOne: ids are [.., 1] (layers.embedding); kAsTheyAre: of any shape (fluid.embedding).
enum class IdsShape : uint8_t { kWithOne, kAsTheyAre };

struct EmbeddingOptions {
  Shape size = {};  // [rows, dim]
  bool is_sparse = false;
  bool is_distributed = false;
  std::optional<int64_t> padding_idx = std::nullopt;  // ids of this row give zeros; negative: from the end
  ParameterAttributes weight = {};
  DataType dtype = DataType::kFloat32;
  IdsShape ids_shape = IdsShape::kWithOne;
};

absl::StatusOr<Variable*> Embedding(ProgramBuilder& builder, Variable* ids, const EmbeddingOptions& options);

// (input − label)², element by element.
absl::StatusOr<Variable*> SquareErrorCost(ProgramBuilder& builder, Variable* input, Variable* label);
absl::StatusOr<Variable*> Mean(ProgramBuilder& builder, Variable* x);

}  // namespace regatta::program::layers
