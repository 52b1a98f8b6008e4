// What an operator takes and gives: its slots, its attributes with their defaults, and how the shapes of its outputs
// follow from its inputs. schema_table.h has those of all operators.
// Thread-safety: a plain value.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "program/attribute.h"

namespace regatta::program {

class InferContext;

// Sets kind, shape, dtype and lod_level of the outputs, or says why the inputs do not fit: "X is [-1, 13] and Y is …".
using InferFunction = absl::Status (*)(InferContext&);

struct SlotSchema {
  std::string_view name;
  bool required = true;
  bool many = false;  // may hold several variables
};

struct AttributeSchema {
  std::string_view name;
  AttributeType type = AttributeType::kInt;
  bool wide = false;                      // an int of 64 bits; the others have 32, as in Fluid
  std::optional<Attribute> fallback;      // nothing = it must be given
  std::vector<std::string_view> choices;  // of a string; empty = any
};

struct OpSchema {
  std::string_view type;
  std::vector<SlotSchema> inputs;
  std::vector<SlotSchema> outputs;
  std::vector<AttributeSchema> attributes;
  InferFunction infer = nullptr;

  const SlotSchema* Input(std::string_view name) const;
  const SlotSchema* Output(std::string_view name) const;
  const AttributeSchema* FindAttribute(std::string_view name) const;
};

}  // namespace regatta::program
