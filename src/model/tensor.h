// libtorch's tensors, their operators and gradients. Without torch::nn, torch::optim and torch::data, which no model
// here uses and which cost every file that includes <torch/torch.h> three seconds.
#pragma once

#include <torch/types.h>
#include <torch/utils.h>
