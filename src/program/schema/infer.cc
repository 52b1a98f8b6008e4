#include "program/schema/infer.h"

namespace regatta::program {

absl::Status OutLikeX(InferContext& context) {
  context.SetLike("Out", "X");
  return absl::OkStatus();
}

absl::Status AsDeclared(InferContext&) { return absl::OkStatus(); }

absl::Status OutFromAttributes(InferContext& context) {
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "dtype"));
  context.Set("Out", context.attributes().Ints("shape"), dtype);
  return absl::OkStatus();
}

absl::StatusOr<size_t> AxisIn(const InferContext& context, std::string_view slot, int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis >= -count && axis < count) return static_cast<size_t>(axis < 0 ? axis + count : axis);
  return context.Refuse({slot}, absl::StrCat("there is no axis ", axis, "; want one from ", -count, " to ", count - 1));
}

absl::StatusOr<DataType> TypeIn(const InferContext& context, std::string_view attribute) {
  const int64_t code = context.attributes().Int(attribute);
  if (const std::optional<DataType> type = DataTypeOfCode(code)) return *type;
  return absl::InvalidArgumentError(
      absl::StrCat("attribute ", base::View(attribute), " is ", code, ", which is no dtype; 5 is float32, 3 is int64"));
}

absl::Status WantIntegers(const InferContext& context, std::string_view slot) {
  const Variable& ids = context.In(slot);
  if (!IsFloat(ids.dtype) && ids.dtype != DataType::kBool) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(base::View(slot), " is ", TypeText(ids),
                                                 "; want int64 (layers.cast, or dtype='int64' where it is declared)"));
}

}  // namespace regatta::program
