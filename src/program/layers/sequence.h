// Layers on sequences that have parameters, or that are several operators.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <optional>
#include <string>

#include "program/program_builder.h"

namespace regatta::program::layers {

// A row for each sequence. `type` in any case: sum, average, sqrt, max, last, first.
absl::StatusOr<Variable*> SequencePool(ProgramBuilder& builder, Variable* input, const std::string& type,
                                       bool is_test = false, double pad_value = 0);

struct SequenceConvOptions {
  int64_t num_filters = 0;
  int64_t filter_size = 3;
  int64_t filter_stride = 1;
  std::optional<int64_t> padding_start = std::nullopt;  // nothing = half a filter before
  ParameterAttributes weight = {};
  ParameterAttributes bias = {};
  std::string activation = {};
  std::string name = {};
};

absl::StatusOr<Variable*> SequenceConv(ProgramBuilder& builder, Variable* input, const SequenceConvOptions& options);

// nets.sequence_conv_pool, whose activation is sigmoid in Fluid if the user gives none.
absl::StatusOr<Variable*> SequenceConvPool(ProgramBuilder& builder, Variable* input, const SequenceConvOptions& options,
                                           const std::string& pool_type);

struct LstmOptions {
  int64_t size = 0;  // four times the size of the cell
  bool use_peepholes = true;
  bool is_reverse = false;
  std::string gate_activation = "sigmoid";
  std::string cell_activation = "tanh";
  std::string candidate_activation = "tanh";
  ParameterAttributes weight = {};
  ParameterAttributes bias = {};
  Variable* h_0 = nullptr;
  Variable* c_0 = nullptr;
  std::string name = {};
};

struct Lstm {
  Variable* hidden = nullptr;
  Variable* cell = nullptr;
};

absl::StatusOr<Lstm> DynamicLstm(ProgramBuilder& builder, Variable* input, const LstmOptions& options);

struct GruOptions {
  int64_t size = 0;  // of the cell
  bool is_reverse = false;
  bool origin_mode = false;
  std::string gate_activation = "sigmoid";
  std::string candidate_activation = "tanh";
  ParameterAttributes weight = {};
  ParameterAttributes bias = {};
  Variable* h_0 = nullptr;
};

absl::StatusOr<Variable*> DynamicGru(ProgramBuilder& builder, Variable* input, const GruOptions& options);

}  // namespace regatta::program::layers
