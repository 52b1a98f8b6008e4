#include "program/clone.h"

#include <set>

#include "program/schema_table.h"

namespace regatta::program {

namespace {

// Without the operations that `keep` does not want.
template <typename Keep>
std::unique_ptr<Program> CloneSome(const Program& program, const Keep& keep) {
  auto copy = std::make_unique<Program>();
  copy->set_random_seed(program.random_seed());
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block& block = program.block(i);
    Block& made = i == 0 ? copy->global_block() : copy->AddBlock(copy->block(block.parent()->index()));
    for (const auto& variable : block.variables()) made.AddVariable(*variable).value();  // names are unique there, too
    for (const auto& operation : block.operations())
      if (keep(*operation)) made.AddOperation(*operation);
  }
  return copy;
}

void SetIsTest(Operation& operation) {
  const OpSchema* schema = FindSchema(operation.type);
  if (schema != nullptr && schema->FindAttribute("is_test") != nullptr) operation.attributes.Set("is_test", true);
}

}  // namespace

std::unique_ptr<Program> Clone(const Program& program) {
  return CloneSome(program, [](const Operation&) { return true; });
}

std::unique_ptr<Program> CloneForTest(const Program& program) {
  std::unique_ptr<Program> copy =
      CloneSome(program, [](const Operation& operation) { return operation.role == Role::kForward; });
  for (size_t i = 0; i < copy->block_count(); ++i)
    for (const auto& operation : copy->block(i).operations()) SetIsTest(*operation);
  RemoveUnusedVariables(*copy);
  return copy;
}

void RemoveUnusedVariables(Program& program) {
  std::set<std::string_view> used;
  for (size_t i = 0; i < program.block_count(); ++i)
    for (const auto& operation : program.block(i).operations())
      for (const Slots* slots : {&operation->inputs, &operation->outputs})
        for (const Slot& slot : *slots) used.insert(slot.variables.begin(), slot.variables.end());
  const auto unused = [&](const Variable& variable) {
    return !variable.is_data && !variable.parameter && !used.contains(variable.name);
  };
  for (size_t i = 0; i < program.block_count(); ++i) program.block(i).RemoveVariables(unused);
}

}  // namespace regatta::program
