// The schemas of all operators: the rows of schema/*.cc, one file a family, put together.
// Thread-safety: constant after the first call, which is safe from any thread.
#pragma once

#include <span>
#include <string_view>

#include "program/op_schema.h"

namespace regatta::program {

// nullptr if there is no such operator.
const OpSchema* FindSchema(std::string_view type);
// The schema, or NOT_FOUND that names the most similar operator.
absl::StatusOr<const OpSchema*> SchemaOf(std::string_view type);

// In the order of the tables.
std::span<const OpSchema> AllSchemas();

// Attributes of Fluid that choose a device's kernel or only describe an operation. Every operator takes them, and
// nothing keeps them.
bool IsHintAttribute(std::string_view name);

}  // namespace regatta::program
