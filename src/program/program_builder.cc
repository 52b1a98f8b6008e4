#include "program/program_builder.h"

#include <algorithm>

#include "base/printable.h"
#include "program/append.h"

namespace regatta::program {

namespace {

Slots SlotsOf(const Arguments& arguments) {
  Slots slots;
  for (const Argument& argument : arguments) {
    Slot slot{argument.slot, {}};
    for (const Variable* variable : argument.variables)
      if (variable != nullptr) slot.variables.push_back(variable->name);
    slots.push_back(std::move(slot));
  }
  return slots;
}

DataType FirstType(const Arguments& arguments) {
  for (const Argument& argument : arguments)
    for (const Variable* variable : argument.variables)
      if (variable != nullptr) return variable->dtype;
  return DataType::kFloat32;
}

}  // namespace

absl::Status ProgramBuilder::Error(std::string_view message) const {
  const absl::Status error = absl::InvalidArgumentError(base::View(message));
  const std::string where = site_.Text();
  return where.empty() ? error : base::Annotate(error, where);
}

absl::StatusOr<Operation*> ProgramBuilder::Append(std::string_view type, const Arguments& inputs,
                                                  const Arguments& outputs, Attributes attributes) {
  Operation operation;
  operation.type = std::string(type);
  operation.inputs = SlotsOf(inputs);
  operation.outputs = SlotsOf(outputs);
  operation.attributes = std::move(attributes);
  operation.role = role_;
  operation.role_variables = role_variables_;
  operation.site = site_;
  return AppendOperation(*block_, std::move(operation));
}

absl::StatusOr<Variable*> ProgramBuilder::CreateVariable(std::string_view key, DataType dtype) {
  Variable variable;
  do {
    variable.name = names_.Generate(key);
  } while (block_->FindHere(variable.name) != nullptr);
  variable.dtype = dtype;
  return block_->AddVariable(std::move(variable));
}

absl::Status ProgramBuilder::Initialize(const Variable& variable, const Initializer& initializer) {
  Block& block = startup_.global_block();
  if (block.FindHere(variable.name) != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Variable* added, block.AddVariable(variable));
  return AppendInitializer(block, *added, initializer, startup_.random_seed(), site_);
}

absl::StatusOr<Variable*> ProgramBuilder::CreateState(std::string name, Shape shape, DataType dtype,
                                                      const Initializer& initializer) {
  Variable variable;
  variable.name = name.empty() ? names_.Generate("_generated_var") : std::move(name);
  variable.shape = std::move(shape);
  variable.dtype = dtype;
  variable.persistable = true;
  variable.stop_gradient = true;
  if (Variable* shared = main_.global_block().FindHere(variable.name)) {
    if (shared->persistable && TypeText(*shared) == TypeText(variable)) return shared;
    return Error(absl::StrCat("the variable '", base::Printable(variable.name), "' is ", TypeText(*shared),
                              " already; give the new one another name"));
  }
  ASSIGN_OR_RETURN(Variable * added, main_.global_block().AddVariable(std::move(variable)));
  RETURN_IF_ERROR(Initialize(*added, initializer));
  return added;
}

absl::StatusOr<Variable*> ProgramBuilder::CreateParameter(const ParameterAttributes& attributes,
                                                          std::string_view name_key, Shape shape, DataType dtype,
                                                          const Initializer& fallback) {
  Variable variable;
  variable.name = attributes.name.empty() ? names_.Generate(name_key) : attributes.name;
  variable.shape = std::move(shape);
  variable.dtype = dtype;
  variable.persistable = true;
  variable.stop_gradient = !attributes.traits.trainable;
  variable.parameter = attributes.traits;
  if (std::ranges::any_of(variable.shape, [](int64_t extent) { return extent < 1; })) {
    return Error(absl::StrCat("the parameter '", base::Printable(variable.name), "' would be ",
                              ShapeText(variable.shape),
                              "; want extents from 1 on: the extents of the input that it is made for must be known"));
  }
  if (Variable* shared = main_.global_block().FindHere(variable.name)) {
    if (shared->parameter && shared->shape == variable.shape && shared->dtype == variable.dtype) return shared;
    return Error(absl::StrCat("the parameter '", base::Printable(variable.name), "' is ", TypeText(*shared),
                              " already and would be ", TypeText(variable), "; give one of them another name"));
  }
  ASSIGN_OR_RETURN(Variable * added, main_.global_block().AddVariable(std::move(variable)));
  RETURN_IF_ERROR(Initialize(*added, attributes.initializer.value_or(fallback)));
  return added;
}

absl::StatusOr<Variable*> LayerCall::Apply(std::string_view type, const Arguments& inputs, Attributes attributes,
                                           std::string_view output) {
  ASSIGN_OR_RETURN(Variable * out, Temporary(FirstType(inputs)));
  RETURN_IF_ERROR(builder_.Append(type, inputs, {{output, out}}, std::move(attributes)).status());
  return out;
}

absl::StatusOr<Variable*> LayerCall::AddBias(const ParameterAttributes& attributes, Variable* x, size_t begin,
                                             size_t end) {
  if (!attributes.wanted) return x;
  const size_t rank = x->shape.size();
  const Shape shape(x->shape.begin() + std::min(begin, rank), x->shape.begin() + std::min(end, rank));
  ASSIGN_OR_RETURN(Variable * bias, Bias(attributes, shape, x->dtype));
  return Apply("elementwise_add", {{"X", x}, {"Y", bias}}, {{"axis", static_cast<int64_t>(begin)}});
}

absl::StatusOr<Variable*> LayerCall::Activate(const std::string& activation, Variable* x) {
  if (activation.empty()) return x;
  return Apply(activation, {{"X", x}});
}

absl::StatusOr<Variable*> ApplyOperator(ProgramBuilder& builder, std::string_view type, const Arguments& inputs,
                                        Attributes attributes, std::string_view output) {
  return LayerCall(builder, type).Apply(type, inputs, std::move(attributes), output);
}

}  // namespace regatta::program
