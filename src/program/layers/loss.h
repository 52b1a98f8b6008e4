// Losses that have parameters or several outputs.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <string>

#include "program/program_builder.h"

namespace regatta::program::layers {

struct CrossEntropyOptions {
  bool soft_label = false;
  int64_t ignore_index = -100;
};

// −log of the probability that `input` gives to the label.
absl::StatusOr<Variable*> CrossEntropy(ProgramBuilder& builder, Variable* input, Variable* label,
                                       const CrossEntropyOptions& options = {});

struct SoftmaxWithCrossEntropyOptions {
  bool soft_label = false;
  int64_t ignore_index = -100;
  bool numeric_stable_mode = true;
  int64_t axis = -1;
};

struct SoftmaxLoss {
  Variable* loss = nullptr;
  Variable* softmax = nullptr;
};

absl::StatusOr<SoftmaxLoss> SoftmaxWithCrossEntropy(ProgramBuilder& builder, Variable* logits, Variable* label,
                                                    const SoftmaxWithCrossEntropyOptions& options = {});

struct NceOptions {
  int64_t num_total_classes = 0;
  int64_t num_neg_samples = 10;
  std::string sampler = "uniform";  // log_uniform
  int64_t seed = 0;
  bool is_sparse = false;
  Variable* sample_weight = nullptr;
  ParameterAttributes weight = {};
  ParameterAttributes bias = {};
  std::string name = {};
};

// Noise-contrastive estimation, divided by the samples of one label.
absl::StatusOr<Variable*> Nce(ProgramBuilder& builder, Variable* input, Variable* label, const NceOptions& options);

struct HsigmoidOptions {
  int64_t num_classes = 0;
  bool is_sparse = false;          // with a tree of one's own only
  Variable* path_table = nullptr;  // a tree of one's own, with path_code
  Variable* path_code = nullptr;
  ParameterAttributes weight = {};
  ParameterAttributes bias = {};
  std::string name = {};
};

// A binary decision at each node from a tree's root to the label.
absl::StatusOr<Variable*> Hsigmoid(ProgramBuilder& builder, Variable* input, Variable* label,
                                   const HsigmoidOptions& options);

}  // namespace regatta::program::layers
