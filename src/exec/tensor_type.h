// Fluid's element types as libtorch's, and texts about tensors.
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "exec/value.h"
#include "program/data_type.h"

namespace regatta::exec {

torch::ScalarType ToScalarType(program::DataType type);
// Nothing if Fluid has no such type.
std::optional<program::DataType> ToDataType(torch::ScalarType type);
// Of an attribute that holds a type's code; float32 if there is no such type.
torch::ScalarType ScalarTypeOfCode(int64_t code);

// "float32 [20, 13]"
std::string TensorText(const torch::Tensor& tensor);

// The first element; c10::Error if there is none.
double FirstElement(const torch::Tensor& tensor);

}  // namespace regatta::exec
