// Lists of integers that an operator takes as tensors or as an attribute.
// Thread-safety: pure functions.
#pragma once

#include "exec/kernel.h"

namespace regatta::exec {

using Integers = std::vector<int64_t>;

// All elements, row after row.
Integers IntegersOf(const torch::Tensor& tensor);

// From the tensors of the slot `list`, one number each, from the tensor of `slot`, or from the attribute.
Integers IntegersOf(const KernelCall& call, std::string_view slot, std::string_view list, std::string_view attribute);

}  // namespace regatta::exec
