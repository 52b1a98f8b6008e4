// Convolutions and pooling over two axes.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <string>
#include <vector>

#include "program/program_builder.h"

namespace regatta::program::layers {

// A pair of numbers is given as one or as two.
using Pair = std::vector<int64_t>;

struct Conv2dOptions {
  int64_t num_filters = 0;
  Pair filter_size = {};
  Pair stride = {1};
  Pair padding = {0};  // one, two, or four: before and after each axis
  Pair dilation = {1};
  int64_t groups = 1;
  std::string padding_algorithm = "EXPLICIT";  // SAME, VALID
  std::string data_format = "NCHW";
  ParameterAttributes weight = {};  // by default normal with deviation √(2 / (filter · channels))
  ParameterAttributes bias = {};
  std::string activation = {};
  std::string name = {};
};

absl::StatusOr<Variable*> Conv2d(ProgramBuilder& builder, Variable* input, const Conv2dOptions& options);

struct Pool2dOptions {
  Pair size = {-1};
  std::string type = "max";  // avg
  Pair stride = {1};
  Pair padding = {0};
  bool global_pooling = false;
  bool ceil_mode = false;
  bool exclusive = true;  // an average does not count what is put around
  std::string padding_algorithm = "EXPLICIT";
  std::string data_format = "NCHW";
  std::string name = {};
};

absl::StatusOr<Variable*> Pool2d(ProgramBuilder& builder, Variable* input, const Pool2dOptions& options);

}  // namespace regatta::program::layers
