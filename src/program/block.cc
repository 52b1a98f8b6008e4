#include "program/block.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace regatta::program {

namespace {

absl::Status Taken(std::string_view name, int block) {
  return absl::AlreadyExistsError(absl::StrCat("block ", block, " has a variable '", base::Printable(name),
                                               "' already; give the new one another name"));
}

void RenameIn(Slots& slots, std::string_view from, const std::string& to) {
  for (Slot& slot : slots) std::ranges::replace(slot.variables, from, to);
}

}  // namespace

Variable* Block::FindHere(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Variable* Block::FindHere(std::string_view name) const { return const_cast<Block*>(this)->FindHere(name); }

Variable* Block::Find(std::string_view name) {
  for (Block* block = this; block != nullptr; block = block->parent_)
    if (Variable* found = block->FindHere(name)) return found;
  return nullptr;
}

const Variable* Block::Find(std::string_view name) const { return const_cast<Block*>(this)->Find(name); }

absl::StatusOr<Variable*> Block::AddVariable(Variable variable) {
  if (variable.name.empty()) return absl::InvalidArgumentError("a variable without a name; give it one");
  if (FindHere(variable.name) != nullptr) return Taken(variable.name, index_);
  variables_.push_back(std::make_unique<Variable>(std::move(variable)));
  Variable* added = variables_.back().get();
  by_name_.emplace(added->name, added);
  return added;
}

absl::Status Block::RenameVariable(std::string_view from, const std::string& to) {
  Variable* variable = FindHere(from);
  if (variable == nullptr) {
    return absl::NotFoundError(absl::StrCat("block ", index_, " has no variable '", base::Printable(from), "'"));
  }
  if (FindHere(to) != nullptr) return Taken(to, index_);
  const std::string old = variable->name;
  by_name_.erase(variable->name);
  variable->name = to;
  by_name_.emplace(variable->name, variable);
  for (const auto& operation : operations_) {
    RenameIn(operation->inputs, old, to);
    RenameIn(operation->outputs, old, to);
    std::ranges::replace(operation->role_variables, old, to);
  }
  return absl::OkStatus();
}

void Block::RemoveVariables(const std::function<bool(const Variable&)>& unwanted) {
  std::erase_if(variables_, [&](const auto& variable) {
    if (!unwanted(*variable)) return false;
    by_name_.erase(variable->name);
    return true;
  });
}

Operation& Block::InsertOperation(size_t at, Operation operation) {
  const auto place = operations_.begin() + static_cast<std::ptrdiff_t>(at);
  return **operations_.insert(place, std::make_unique<Operation>(std::move(operation)));
}

void Block::RemoveOperations(size_t begin, size_t end) {
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(begin),
                    operations_.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace regatta::program
