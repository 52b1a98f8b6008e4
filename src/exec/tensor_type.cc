#include "exec/tensor_type.h"

#include "program/shape.h"

namespace regatta::exec {

namespace {

using program::DataType;

struct TypePair {
  DataType type;
  torch::ScalarType scalar;
};

constexpr TypePair kTypes[] = {
    {DataType::kBool, torch::kBool},       {DataType::kInt16, torch::kInt16},     {DataType::kInt32, torch::kInt32},
    {DataType::kInt64, torch::kInt64},     {DataType::kFloat16, torch::kFloat16}, {DataType::kFloat32, torch::kFloat32},
    {DataType::kFloat64, torch::kFloat64}, {DataType::kUInt8, torch::kUInt8},     {DataType::kInt8, torch::kInt8},
};

}  // namespace

torch::ScalarType ToScalarType(DataType type) {
  for (const TypePair& pair : kTypes)
    if (pair.type == type) return pair.scalar;
  return torch::kFloat32;
}

std::optional<DataType> ToDataType(torch::ScalarType type) {
  for (const TypePair& pair : kTypes)
    if (pair.scalar == type) return pair.type;
  return std::nullopt;
}

torch::ScalarType ScalarTypeOfCode(int64_t code) {
  return ToScalarType(program::DataTypeOfCode(code).value_or(DataType::kFloat32));
}

std::string TensorText(const torch::Tensor& tensor) {
  const std::optional<DataType> type = ToDataType(tensor.scalar_type());
  return absl::StrCat(type ? program::DataTypeName(*type) : c10::toString(tensor.scalar_type()), " ",
                      program::ShapeText(tensor.sizes().vec()));
}

double FirstElement(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.numel() > 0, "a number is wanted and the tensor is empty");
  if (tensor.scalar_type() == torch::kFloat32) return *tensor.data_ptr<float>();
  if (tensor.scalar_type() == torch::kFloat64) return *tensor.data_ptr<double>();
  return tensor.flatten()[0].item<double>();
}

}  // namespace regatta::exec
