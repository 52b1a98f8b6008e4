#include "program/optimizers/optimizer.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "program/optimizers/gradient_clip.h"
#include "program/optimizers/regularizer.h"
#include "program/schema_table.h"

namespace regatta::program {

namespace {

absl::Status CheckArguments(const OptimizerRow& row, const Attributes& arguments) {
  for (const auto& [keyword, value] : arguments) {
    if (std::ranges::find(row.arguments, keyword, &ArgumentRow::keyword) == row.arguments.end()) {
      const auto append = [](std::string* out, const ArgumentRow& each) { out->append(each.keyword); };
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer.", base::View(row.name), " has no argument '", base::Printable(keyword),
                       "'; its arguments are learning_rate, regularization, grad_clip",
                       row.arguments.empty() ? "" : ", ", absl::StrJoin(row.arguments, ", ", append)));
    }
    if (!ConvertTo(value, AttributeType::kFloat)) {
      return absl::InvalidArgumentError(absl::StrCat("optimizer.", base::View(row.name), ": ", keyword, " is ",
                                                     AttributeText(value), "; want a number"));
    }
  }
  for (const ArgumentRow& each : row.arguments) {
    if (!each.required || arguments.Find(each.keyword) != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.", base::View(row.name), " needs the argument ", base::View(each.keyword)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Optimizer> Optimizer::Make(OptimizerOptions options) {
  ASSIGN_OR_RETURN(const OptimizerRow* row, OptimizerNamed(options.type));
  RETURN_IF_ERROR(CheckArguments(*row, options.arguments));
  return Optimizer(row, std::move(options));
}

double Optimizer::Argument(std::string_view keyword) const {
  if (const Attribute* given = options_.arguments.Find(keyword))
    return std::get<double>(*ConvertTo(*given, AttributeType::kFloat));
  return std::ranges::find(row_->arguments, keyword, &ArgumentRow::keyword)->fallback;
}

absl::StatusOr<Minimized> Optimizer::Minimize(ProgramBuilder& builder, Variable* loss,
                                              const std::vector<std::string>& parameters, const NameSet& no_gradient) {
  ASSIGN_OR_RETURN(std::vector<ParameterGradient> gradients, AppendBackward(builder, loss, parameters, no_gradient));
  return ApplyGradients(builder, std::move(gradients));
}

absl::StatusOr<Minimized> Optimizer::ApplyGradients(ProgramBuilder& builder, std::vector<ParameterGradient> gradients) {
  std::erase_if(gradients, [](const ParameterGradient& each) { return each.gradient == nullptr; });
  std::ranges::sort(gradients, {}, [](const ParameterGradient& each) { return each.parameter->name; });
  ASSIGN_OR_RETURN(gradients, AppendGradientClip(builder, std::move(gradients), options_.gradient_clip));
  ASSIGN_OR_RETURN(gradients, AppendRegularizers(builder, std::move(gradients), options_.regularizer));
  for (const ParameterGradient& each : gradients) RETURN_IF_ERROR(CreateAccumulators(builder, *each.parameter));
  if (learning_rate(builder.main()) == nullptr) {
    ASSIGN_OR_RETURN(learning_rates_[&builder.main()], CreateLearningRate(builder));
  }
  Minimized result;
  for (const ParameterGradient& each : gradients) {
    ASSIGN_OR_RETURN(Operation * update, AppendUpdate(builder, each));
    result.operations.push_back(update);
  }
  for (const ParameterGradient& each : gradients) RETURN_IF_ERROR(AdvanceAccumulators(builder, each));
  result.gradients = std::move(gradients);
  return result;
}

absl::StatusOr<Variable*> Optimizer::CreateLearningRate(ProgramBuilder& builder) {
  if (Variable* const* given = std::get_if<Variable*>(&options_.learning_rate)) return *given;
  return builder.CreateState(builder.names().Generate("learning_rate"), {1}, DataType::kFloat32,
                             Initializer::Constant(std::get<double>(options_.learning_rate)));
}

absl::StatusOr<Variable*> Optimizer::RateOf(ProgramBuilder& builder, const Variable& parameter) {
  Variable* whole = learning_rate(builder.main());
  const double factor = parameter.parameter->learning_rate;
  if (factor == 1) return whole;
  const RoleScope role(builder, Role::kLrSchedule);
  ASSIGN_OR_RETURN(Variable * rate, builder.CreateVariable("tmp", whole->dtype));
  RETURN_IF_ERROR(builder.Append("scale", {{"X", whole}}, {{"Out", rate}}, {{"scale", factor}}).status());
  return rate;
}

absl::Status Optimizer::CreateAccumulators(ProgramBuilder& builder, const Variable& parameter) {
  std::vector<Variable*>& made = accumulators_[&parameter];
  if (!made.empty()) {
    return builder.Error(absl::StrCat("this optimizer trains '", base::Printable(parameter.name),
                                      "' already; give each call of minimize an optimizer of its own"));
  }
  for (const AccumulatorRow& row : row_->accumulators) {
    const std::string own = options_.name.empty() ? "" : options_.name + "_";
    const std::string name = builder.names().Generate(absl::StrCat(parameter.name, "_", own, base::View(row.name)));
    const bool one = row.extent == AccumulatorRow::Extent::kOne;
    ASSIGN_OR_RETURN(Variable * accumulator,
                     builder.CreateState(name, one ? Shape{1} : parameter.shape, parameter.dtype,
                                         Initializer::Constant(row.start.empty() ? 0 : Argument(row.start))));
    made.push_back(accumulator);
  }
  return absl::OkStatus();
}

absl::StatusOr<Operation*> Optimizer::AppendUpdate(ProgramBuilder& builder, const ParameterGradient& each) {
  const OpSchema& schema = *FindSchema(row_->operator_type);
  Arguments inputs = {{"Param", each.parameter}, {"Grad", each.gradient}}, outputs = {{"ParamOut", each.parameter}};
  if (schema.Input("LearningRate") != nullptr) {
    ASSIGN_OR_RETURN(Variable * rate, RateOf(builder, *each.parameter));
    inputs.emplace_back("LearningRate", rate);
  }
  const std::vector<Variable*>& accumulators = accumulators_[each.parameter];
  for (size_t i = 0; i < accumulators.size(); ++i) {
    const AccumulatorRow& row = row_->accumulators[i];
    inputs.emplace_back(row.input, accumulators[i]);
    if (!row.output.empty()) outputs.emplace_back(row.output, accumulators[i]);
  }
  Attributes attributes;
  for (const ArgumentRow& row : row_->arguments) {
    if (row.attribute.empty()) continue;
    const double value = Argument(row.keyword);
    const bool truth = schema.FindAttribute(row.attribute)->type == AttributeType::kBool;
    attributes.Set(std::string(row.attribute), truth ? Attribute(value != 0) : Attribute(value));
  }
  const RoleScope role(builder, Role::kOptimize);
  builder.set_role_variables({each.parameter->name, each.gradient->name});
  return builder.Append(row_->operator_type, inputs, outputs, std::move(attributes));
}

absl::Status Optimizer::AdvanceAccumulators(ProgramBuilder& builder, const ParameterGradient& each) {
  const RoleScope role(builder, Role::kOptimize);
  builder.set_role_variables({each.parameter->name, each.gradient->name});
  const std::vector<Variable*>& accumulators = accumulators_[each.parameter];
  for (size_t i = 0; i < accumulators.size(); ++i) {
    const std::string_view factor = row_->accumulators[i].advanced_by;
    if (factor.empty()) continue;
    RETURN_IF_ERROR(
        builder.Append("scale", {{"X", accumulators[i]}}, {{"Out", accumulators[i]}}, {{"scale", Argument(factor)}})
            .status());
  }
  return absl::OkStatus();
}

}  // namespace regatta::program
