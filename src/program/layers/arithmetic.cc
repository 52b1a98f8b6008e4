#include "program/layers/arithmetic.h"

#include <cmath>
#include <optional>

namespace regatta::program::layers {

namespace {

// x · factor + offset
struct Line {
  double factor = 1;
  double offset = 0;
};

std::optional<Line> AsLine(std::string_view type, double number, Side side) {
  const bool left = side == Side::kLeft;
  if (type == "elementwise_add") return Line{1, number};
  if (type == "elementwise_sub") return left ? Line{-1, number} : Line{1, -number};
  if (type == "elementwise_mul") return Line{number, 0};
  if (type == "elementwise_div" && !left && number != 0) return Line{1 / number, 0};
  return std::nullopt;
}

absl::StatusOr<Variable*> Number(ProgramBuilder& builder, double number, DataType dtype) {
  ASSIGN_OR_RETURN(Variable * constant, builder.CreateVariable("tmp", dtype));
  constant->stop_gradient = true;
  RETURN_IF_ERROR(builder
                      .Append("fill_constant", {}, {{"Out", constant}},
                              {{"shape", Shape{1}}, {"dtype", CodeOf(dtype)}, {"value", number}})
                      .status());
  return constant;
}

}  // namespace

absl::StatusOr<Variable*> Cast(ProgramBuilder& builder, Variable* x, DataType dtype) {
  ASSIGN_OR_RETURN(Variable * out, builder.CreateVariable("tmp", dtype));
  RETURN_IF_ERROR(
      builder.Append("cast", {{"X", x}}, {{"Out", out}}, {{"in_dtype", CodeOf(x->dtype)}, {"out_dtype", CodeOf(dtype)}})
          .status());
  return out;
}

absl::StatusOr<Variable*> Combine(ProgramBuilder& builder, std::string_view type, Variable* x, Variable* y) {
  if (x->dtype != y->dtype) {
    ASSIGN_OR_RETURN(y, Cast(builder, y, x->dtype));
  }
  ASSIGN_OR_RETURN(Variable * out, builder.CreateVariable("tmp", x->dtype));
  // As in Fluid: a batch on the right lies along the batch on the left.
  const int64_t axis = !y->shape.empty() && y->shape[0] < 0 ? 0 : -1;
  RETURN_IF_ERROR(builder.Append(type, {{"X", x}, {"Y", y}}, {{"Out", out}}, {{"axis", axis}}).status());
  return out;
}

absl::StatusOr<Variable*> CombineWithNumber(ProgramBuilder& builder, std::string_view type, Variable* x, double number,
                                            Side side) {
  const bool whole = !IsFloat(x->dtype);
  if (whole && number != std::floor(number))
    return builder.Error(
        absl::StrCat(number, " is no whole number, and the variable is ", TypeText(*x), "; layers.cast it"));
  const std::optional<Line> line = AsLine(type, number, side);
  if (line && !(whole && type == "elementwise_div")) {
    ASSIGN_OR_RETURN(Variable * out, builder.CreateVariable("tmp", x->dtype));
    RETURN_IF_ERROR(
        builder.Append("scale", {{"X", x}}, {{"Out", out}}, {{"scale", line->factor}, {"bias", line->offset}})
            .status());
    return out;
  }
  ASSIGN_OR_RETURN(Variable * constant, Number(builder, number, x->dtype));
  return side == Side::kLeft ? Combine(builder, type, constant, x) : Combine(builder, type, x, constant);
}

}  // namespace regatta::program::layers
