// The element types of Fluid's tensors. The values are Fluid's own codes, which attributes such as `dtype` carry.
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/named.h"

namespace regatta::program {

enum class DataType : uint8_t {
  kBool = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFloat16 = 4,
  kFloat32 = 5,
  kFloat64 = 6,
  kUInt8 = 20,
  kInt8 = 21,
};

inline constexpr base::Named<DataType> kDataTypes[] = {
    {"bool", DataType::kBool},       {"uint8", DataType::kUInt8},     {"int8", DataType::kInt8},
    {"int16", DataType::kInt16},     {"int32", DataType::kInt32},     {"int64", DataType::kInt64},
    {"float16", DataType::kFloat16}, {"float32", DataType::kFloat32}, {"float64", DataType::kFloat64},
};

constexpr const char* DataTypeName(DataType type) { return base::NameIn(kDataTypes, type); }
// Nothing if no type has the name.
constexpr std::optional<DataType> DataTypeNamed(std::string_view name) { return base::ValueIn(kDataTypes, name); }

// Nothing if no type has the code.
constexpr std::optional<DataType> DataTypeOfCode(int64_t code) {
  for (const auto& entry : kDataTypes)
    if (static_cast<int64_t>(entry.value) == code) return entry.value;
  return std::nullopt;
}
constexpr int64_t CodeOf(DataType type) { return static_cast<int64_t>(type); }

constexpr bool IsFloat(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kFloat32 || type == DataType::kFloat64;
}

}  // namespace regatta::program
