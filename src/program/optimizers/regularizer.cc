#include "program/optimizers/regularizer.h"

namespace regatta::program {

namespace {

// coefficient · w, or coefficient · sign(w)
absl::StatusOr<Variable*> Penalty(ProgramBuilder& builder, const Regularizer& regularizer, Variable* parameter) {
  ASSIGN_OR_RETURN(Variable * penalty, builder.CreateVariable("_generated_var", parameter->dtype));
  Variable* of = parameter;
  if (regularizer.kind == Regularizer::Kind::kL1) {
    RETURN_IF_ERROR(builder.Append("sign", {{"X", parameter}}, {{"Out", penalty}}).status());
    of = penalty;
  }
  RETURN_IF_ERROR(
      builder.Append("scale", {{"X", of}}, {{"Out", penalty}}, {{"scale", regularizer.coefficient}}).status());
  return penalty;
}

}  // namespace

absl::StatusOr<std::vector<ParameterGradient>> AppendRegularizers(ProgramBuilder& builder,
                                                                  std::vector<ParameterGradient> gradients,
                                                                  const std::optional<Regularizer>& regularizer) {
  const RoleScope role(builder, Role::kOptimize);
  for (ParameterGradient& each : gradients) {
    const std::optional<Regularizer>& own = each.parameter->parameter->regularizer;
    if (!own && !regularizer) continue;
    builder.set_role_variables({each.parameter->name, each.gradient->name});
    ASSIGN_OR_RETURN(Variable * penalty, Penalty(builder, own ? *own : *regularizer, each.parameter));
    Variable* sum = each.gradient;
    if (sum->kind == VariableKind::kSelectedRows) {  // rows and a penalty on all rows make a tensor
      ASSIGN_OR_RETURN(sum, builder.CreateVariable(each.gradient->name, each.gradient->dtype));
    }
    RETURN_IF_ERROR(builder.Append("sum", {{"X", {each.gradient, penalty}}}, {{"Out", sum}}).status());
    each.gradient = sum;
  }
  return gradients;
}

}  // namespace regatta::program
