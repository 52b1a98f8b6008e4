// Layers that keep activations in a range: batch_norm, layer_norm, data_norm, dropout.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <optional>
#include <string>

#include "program/program_builder.h"

namespace regatta::program::layers {

struct BatchNormOptions {
  bool is_test = false;
  bool use_global_stats = false;
  double momentum = 0.9;
  double epsilon = 1e-5;
  std::string data_layout = "NCHW";
  ParameterAttributes scale = {};  // by default 1
  ParameterAttributes bias = {};
  std::string moving_mean_name = {};
  std::string moving_variance_name = {};
  std::string activation = {};
  std::string name = {};
};

absl::StatusOr<Variable*> BatchNorm(ProgramBuilder& builder, Variable* input, const BatchNormOptions& options);

struct LayerNormOptions {
  int64_t begin_norm_axis = 1;
  double epsilon = 1e-5;
  ParameterAttributes scale = {};  // by default 1; wanted = false leaves it out
  ParameterAttributes bias = {};
  std::string activation = {};
  std::string name = {};
};

absl::StatusOr<Variable*> LayerNorm(ProgramBuilder& builder, Variable* input, const LayerNormOptions& options);

struct DataNormOptions {
  double epsilon = 1e-5;
  double batch_size = 1e4;  // what the sums begin with
  double batch_sum = 0;
  double batch_square_sum = 1e4;
  std::string activation = {};
  std::string name = {};  // of the parameters: "<name>.batch_size", …; empty = "dn"
};

// Normalises by sums over all that was seen: three parameters, which the operator itself updates.
absl::StatusOr<Variable*> DataNorm(ProgramBuilder& builder, Variable* input, const DataNormOptions& options);

struct DropoutOptions {
  double probability = 0.5;
  bool is_test = false;
  std::optional<int64_t> seed = std::nullopt;         // nothing = the program's
  std::string implementation = "downgrade_in_infer";  // upscale_in_train
  std::string name = {};
};

absl::StatusOr<Variable*> Dropout(ProgramBuilder& builder, Variable* x, const DropoutOptions& options);

}  // namespace regatta::program::layers
