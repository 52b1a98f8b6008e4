// The operators of the language on variables: a + b, 2 - a, a < 3. Results are named "tmp_<n>".
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <string_view>

#include "program/program_builder.h"

namespace regatta::program::layers {

// Which operand the number is.
enum class Side : uint8_t { kLeft, kRight };

// `type` is a binary operator: elementwise_add, less_than, … If the dtypes differ, y is cast to that of x.
absl::StatusOr<Variable*> Combine(ProgramBuilder& builder, std::string_view type, Variable* x, Variable* y);

// With a number: sums, differences, products and quotients by a number are one `scale`. An integer variable takes whole
// numbers only.
absl::StatusOr<Variable*> CombineWithNumber(ProgramBuilder& builder, std::string_view type, Variable* x, double number,
                                            Side side);

// x as another type.
absl::StatusOr<Variable*> Cast(ProgramBuilder& builder, Variable* x, DataType dtype);

}  // namespace regatta::program::layers
