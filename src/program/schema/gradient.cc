// Operators that stand for a whole backward pass: the executor's autograd computes the gradients.
#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

absl::Status InferBackward(InferContext& context) {
  if (context.Count("Inputs") != context.OutputCount("Gradients")) {
    return absl::InvalidArgumentError(absl::StrCat("Inputs holds ", context.Count("Inputs"),
                                                   " variables and Gradients ", context.OutputCount("Gradients"),
                                                   "; want a gradient for each input"));
  }
  if (context.Has("TargetGradients") && context.Count("TargetGradients") != context.Count("Targets"))
    return absl::InvalidArgumentError("want a gradient for each target, or none at all");
  for (size_t i = 0; i < context.Count("Inputs"); ++i) {
    const Variable& input = context.In("Inputs", i);
    context.SetAt("Gradients", i, Shape(input.shape), input.dtype, input.lod_level);
  }
  return absl::OkStatus();
}

constexpr OpRow kGradientRows[] = {
    // Gradients[i] is the gradient of the sum of Targets (weighted by TargetGradients) to Inputs[i]; only those that
    // are
    // used or fetched are computed.
    {"backward", "Targets* Inputs* TargetGradients*?", "Gradients*", "", InferBackward},
};

}  // namespace

std::span<const OpRow> GradientRows() { return kGradientRows; }

}  // namespace regatta::program
