#include "program/program_text.h"

#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/scalar.h"
#include "program/schema_table.h"

namespace regatta::program {

namespace {

std::string SlotsText(const Slots& slots) {
  return absl::StrJoin(slots, ", ", [](std::string* out, const Slot& slot) {
    const std::string names = absl::StrJoin(slot.variables, ", ");
    const std::string list = slot.variables.size() == 1 ? names : absl::StrCat("[", names, "]");
    out->append(base::Printable(absl::StrCat(slot.name, "=", list)));
  });
}

const char* WhatIs(const Variable& variable) {
  if (variable.parameter) return "parameter ";
  if (variable.is_data) return "data ";
  return variable.persistable ? "state " : "";
}

void AppendTraits(std::string& text, const ParameterTraits& traits) {
  if (!traits.trainable) text += ", not trainable";
  if (traits.learning_rate != 1) absl::StrAppend(&text, ", learning_rate x ", base::NumberText(traits.learning_rate));
  if (traits.is_distributed) text += ", distributed";
  if (traits.regularizer) {
    absl::StrAppend(&text, traits.regularizer->kind == Regularizer::Kind::kL1 ? ", L1Decay " : ", L2Decay ",
                    base::NumberText(traits.regularizer->coefficient));
  }
  if (traits.gradient_clip) text += ", gradient clip";
}

}  // namespace

std::string VariableText(const Variable& variable) {
  std::string text = absl::StrCat(WhatIs(variable), base::Printable(variable.name), ": ", TypeText(variable));
  if (variable.lod_level > 0) absl::StrAppend(&text, ", lod_level ", variable.lod_level);
  if (variable.parameter) AppendTraits(text, *variable.parameter);
  const bool usual = variable.is_data || (variable.persistable && !variable.parameter);
  if (variable.stop_gradient && !usual && !variable.parameter) text += ", stop_gradient";
  if (!variable.stop_gradient && usual) text += ", with gradient";
  return text;
}

std::string OperationText(const Operation& operation) {
  std::vector<std::string> arguments;
  if (!operation.inputs.empty()) arguments.push_back(SlotsText(operation.inputs));
  const OpSchema* schema = FindSchema(operation.type);
  for (const auto& [name, value] : operation.attributes) {
    const AttributeSchema* known = schema == nullptr ? nullptr : schema->FindAttribute(name);
    if (known != nullptr && known->fallback == value) continue;
    arguments.push_back(absl::StrCat(base::Printable(name), ": ", AttributeText(value)));
  }
  std::string text = operation.outputs.empty() ? "" : SlotsText(operation.outputs) + " <- ";
  absl::StrAppend(&text, base::Printable(operation.type), "(", absl::StrJoin(arguments, ", "), ")");
  if (operation.role != Role::kForward) absl::StrAppend(&text, " [", base::NameIn(kRoles, operation.role), "]");
  return text;
}

std::string ProgramText(const Program& program) {
  std::string text = absl::StrCat("program, random_seed ", program.random_seed(), "\n");
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block& block = program.block(i);
    absl::StrAppend(&text, "block ", i);
    if (block.parent() != nullptr) absl::StrAppend(&text, " in block ", block.parent()->index());
    text += "\n";
    for (const auto& variable : block.variables()) absl::StrAppend(&text, "  ", VariableText(*variable), "\n");
    for (const auto& operation : block.operations()) absl::StrAppend(&text, "  ", OperationText(*operation), "\n");
  }
  return text;
}

}  // namespace regatta::program
