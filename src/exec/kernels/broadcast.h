// The shapes of Fluid's elementwise operators.
// Thread-safety: pure functions.
#pragma once

#include <utility>

#include "exec/kernel.h"

namespace regatta::exec {

// X and Y of an elementwise operator as libtorch broadcasts them: the shorter one lies along `axis` of the longer one
// (-1: at its end). Y gets the type of X.
std::pair<torch::Tensor, torch::Tensor> Broadcast(const torch::Tensor& x, const torch::Tensor& y, int64_t axis);

}  // namespace regatta::exec
