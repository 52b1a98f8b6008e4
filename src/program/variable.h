// A variable of a block: a name for a value that operations read and write.
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/named.h"
#include "program/data_type.h"
#include "program/shape.h"

namespace regatta::program {

enum class VariableKind : uint8_t { kLodTensor, kSelectedRows, kLodTensorArray, kReader, kRaw };

inline constexpr base::Named<VariableKind> kVariableKinds[] = {
    {"lod_tensor", VariableKind::kLodTensor},
    {"selected_rows", VariableKind::kSelectedRows},
    {"lod_tensor_array", VariableKind::kLodTensorArray},
    {"reader", VariableKind::kReader},
    {"raw", VariableKind::kRaw},
};
static_assert(base::InOrder(kVariableKinds));

// L1Decay adds coefficient · sign(w) to a gradient, L2Decay coefficient · w.
struct Regularizer {
  enum class Kind : uint8_t { kL1, kL2 };
  Kind kind = Kind::kL2;
  double coefficient = 0;
  friend bool operator==(const Regularizer&, const Regularizer&) = default;
};

// kValue keeps every element in [low, high]. kNorm scales a gradient whose norm is above `limit` down to it;
// kGlobalNorm does so with all gradients of one group together.
struct GradientClip {
  enum class Kind : uint8_t { kValue, kNorm, kGlobalNorm };
  Kind kind = Kind::kValue;
  double low = 0;
  double high = 0;
  double limit = 0;
  std::string group = "default_group";
  friend bool operator==(const GradientClip&, const GradientClip&) = default;
};

// What makes a variable a parameter: an optimizer may change it.
struct ParameterTraits {
  bool trainable = true;
  double learning_rate = 1;  // a factor of the optimizer's
  std::optional<Regularizer> regularizer = std::nullopt;
  std::optional<GradientClip> gradient_clip = std::nullopt;
  bool is_distributed = false;  // the rows of a table on the servers, born when they are first asked for
  friend bool operator==(const ParameterTraits&, const ParameterTraits&) = default;
};

struct Variable {
  std::string name;
  VariableKind kind = VariableKind::kLodTensor;
  Shape shape;
  DataType dtype = DataType::kFloat32;
  int lod_level = 0;           // levels of offsets: 1 = a sequence a sample, 2 = a sequence of sequences
  bool persistable = false;    // lives as long as the scope, and is saved
  bool stop_gradient = false;  // no gradient goes through it
  bool is_data = false;        // fed
  std::optional<ParameterTraits> parameter = std::nullopt;
  friend bool operator==(const Variable&, const Variable&) = default;
};

// The name of the variable that holds the gradient of `name`.
inline std::string GradientName(const std::string& name) { return name + "@GRAD"; }

// "float32 [-1, 13]", "selected_rows int64 [10, 4]"
std::string TypeText(const Variable& variable);

}  // namespace regatta::program
