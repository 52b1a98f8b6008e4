// Infer functions and checks that several families of operators share.
// Thread-safety: pure functions but for the outputs of their context.
#pragma once

#include <string_view>

#include "program/infer_context.h"

namespace regatta::program {

// Out is as X: kind, shape, dtype, lod_level.
absl::Status OutLikeX(InferContext& context);
// Nothing to infer: outputs keep what they were declared with.
absl::Status AsDeclared(InferContext& context);
// Out has the attributes `shape` and `dtype`.
absl::Status OutFromAttributes(InferContext& context);

// The attribute as a place among `rank` extents, counted from behind if it is negative.
absl::StatusOr<size_t> AxisIn(const InferContext& context, std::string_view slot, int64_t axis, size_t rank);

// The dtype that an attribute holds as a code.
absl::StatusOr<DataType> TypeIn(const InferContext& context, std::string_view attribute);

// An error if the slot's variable is no integer, with what to do.
absl::Status WantIntegers(const InferContext& context, std::string_view slot);

}  // namespace regatta::program
