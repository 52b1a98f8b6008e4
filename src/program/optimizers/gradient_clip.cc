#include "program/optimizers/gradient_clip.h"

#include <algorithm>
#include <map>

#include "base/printable.h"

namespace regatta::program {

namespace {

// Those of one group, whose norm is taken together.
struct ClipGroup {
  double limit = 0;
  std::vector<ParameterGradient*> members;
};

// A gradient of rows as a tensor: rows that occur twice are added up.
absl::StatusOr<Variable*> AsTensor(ProgramBuilder& builder, Variable* gradient) {
  if (gradient->kind != VariableKind::kSelectedRows) return gradient;
  ASSIGN_OR_RETURN(Variable * merged, ApplyOperator(builder, "merge_selected_rows", {{"X", gradient}}));
  return ApplyOperator(builder, "get_tensor_from_selected_rows", {{"X", merged}});
}

absl::StatusOr<Variable*> SquareSum(ProgramBuilder& builder, Variable* gradient) {
  ASSIGN_OR_RETURN(Variable * tensor, AsTensor(builder, gradient));
  ASSIGN_OR_RETURN(Variable * square, ApplyOperator(builder, "square", {{"X", tensor}}));
  return ApplyOperator(builder, "reduce_sum", {{"X", square}}, {{"reduce_all", true}});
}

// limit / max(limit, norm of all)
absl::StatusOr<Variable*> GroupScale(ProgramBuilder& builder, const ClipGroup& group) {
  std::vector<Variable*> sums;
  for (const ParameterGradient* member : group.members) {
    builder.set_role_variables({member->parameter->name, member->gradient->name});
    ASSIGN_OR_RETURN(Variable * sum, SquareSum(builder, member->gradient));
    sums.push_back(sum);
  }
  builder.set_role_variables({});
  ASSIGN_OR_RETURN(Variable * total, ApplyOperator(builder, "sum", {{"X", sums}}));
  ASSIGN_OR_RETURN(Variable * norm, ApplyOperator(builder, "sqrt", {{"X", total}}));
  ASSIGN_OR_RETURN(Variable * limit,
                   ApplyOperator(builder, "fill_constant", {},
                                 {{"shape", Shape{1}}, {"dtype", CodeOf(norm->dtype)}, {"value", group.limit}}));
  ASSIGN_OR_RETURN(Variable * larger, ApplyOperator(builder, "elementwise_max", {{"X", limit}, {"Y", norm}}));
  return ApplyOperator(builder, "elementwise_div", {{"X", limit}, {"Y", larger}});
}

absl::Status ClipGroups(ProgramBuilder& builder, const std::map<std::string, ClipGroup>& groups) {
  for (const auto& [name, group] : groups) {
    ASSIGN_OR_RETURN(Variable * scale, GroupScale(builder, group));
    for (ParameterGradient* member : group.members) {
      builder.set_role_variables({member->parameter->name, member->gradient->name});
      ASSIGN_OR_RETURN(member->gradient,
                       ApplyOperator(builder, "elementwise_mul", {{"X", member->gradient}, {"Y", scale}}));
    }
  }
  return absl::OkStatus();
}

absl::Status ClipAlone(ProgramBuilder& builder, const GradientClip& clip, ParameterGradient& each) {
  builder.set_role_variables({each.parameter->name, each.gradient->name});
  if (clip.kind == GradientClip::Kind::kValue) {
    ASSIGN_OR_RETURN(each.gradient,
                     ApplyOperator(builder, "clip", {{"X", each.gradient}}, {{"min", clip.low}, {"max", clip.high}}));
  } else {
    ASSIGN_OR_RETURN(each.gradient,
                     ApplyOperator(builder, "clip_by_norm", {{"X", each.gradient}}, {{"max_norm", clip.limit}}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ParameterGradient>> AppendGradientClip(ProgramBuilder& builder,
                                                                  std::vector<ParameterGradient> gradients,
                                                                  const std::optional<GradientClip>& clip) {
  const RoleScope role(builder, Role::kOptimize);
  std::map<std::string, ClipGroup> groups;
  for (ParameterGradient& each : gradients) {
    const std::optional<GradientClip>& own = clip ? clip : each.parameter->parameter->gradient_clip;
    if (!own) continue;
    if (own->kind != GradientClip::Kind::kGlobalNorm) {
      RETURN_IF_ERROR(ClipAlone(builder, *own, each));
      continue;
    }
    ClipGroup& group = groups[own->group];
    if (!group.members.empty() && group.limit != own->limit) {
      return builder.Error(absl::StrCat("the gradients of the clip group '", base::Printable(own->group),
                                        "' have the limits ", group.limit, " and ", own->limit,
                                        "; give all of a group the same, or another group_name"));
    }
    group.limit = own->limit;
    group.members.push_back(&each);
  }
  RETURN_IF_ERROR(ClipGroups(builder, groups));
  return gradients;
}

}  // namespace regatta::program
