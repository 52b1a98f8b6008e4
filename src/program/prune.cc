#include "program/prune.h"

#include <algorithm>
#include <set>

#include "base/printable.h"
#include "program/append.h"
#include "program/clone.h"

namespace regatta::program {

namespace {

constexpr char kFeed[] = "feed", kFetch[] = "fetch";

using Needed = std::set<std::string, std::less<>>;

absl::Status CheckNames(const Program& program, const std::vector<std::string>& names, std::string_view what) {
  for (const std::string& name : names) {
    if (program.global_block().FindHere(name) != nullptr) continue;
    return absl::NotFoundError(absl::StrCat("the ", base::View(what), " '", base::Printable(name),
                                            "' is no variable of the program's first block"));
  }
  return absl::OkStatus();
}

// The bodies that the operation runs.
std::vector<int64_t> BodiesOf(const Operation& operation) {
  std::vector<int64_t> bodies;
  for (const auto& [name, value] : operation.attributes) {
    if (const auto* one = std::get_if<BlockIndex>(&value)) bodies.push_back(one->value);
    if (const auto* many = std::get_if<std::vector<BlockIndex>>(&value))
      for (const BlockIndex each : *many) bodies.push_back(each.value);
  }
  return bodies;
}

void Insert(Needed& names, const Slots& slots) {
  for (const Slot& slot : slots) names.insert(slot.variables.begin(), slot.variables.end());
}

// What is kept of a program, found from its end on.
struct Kept {
  Needed read = {};   // must be there before the operations that are kept
  Needed named = {};  // by those operations
  std::set<int64_t> blocks = {0};

  // In the operation's bodies too.
  void Add(const Program& program, const Operation& operation) {
    Insert(read, operation.inputs);
    Insert(named, operation.inputs);
    Insert(named, operation.outputs);
    for (const int64_t body : BodiesOf(operation)) {
      if (body <= 0 || body >= static_cast<int64_t>(program.block_count()) || !blocks.insert(body).second) continue;
      for (const auto& inner : program.block(body).operations()) Add(program, *inner);
    }
  }

  // Whether it writes what is read, and not fed.
  bool Wants(const Operation& operation, const Needed& feeds) const {
    return std::ranges::any_of(operation.outputs, [&](const Slot& slot) {
      return std::ranges::any_of(slot.variables,
                                 [&](const std::string& name) { return read.contains(name) && !feeds.contains(name); });
    });
  }
};

// Removes the operations that `targets` do not need; returns the names that are left.
Needed RemoveUnneeded(Program& program, const Needed& feeds, const Needed& targets) {
  Block& block = program.global_block();
  Kept kept{.read = targets, .named = targets};
  kept.named.insert(feeds.begin(), feeds.end());
  for (size_t i = block.operations().size(); i-- > 0;) {
    const Operation& operation = *block.operations()[i];
    if (kept.Wants(operation, feeds)) {
      kept.Add(program, operation);
    } else {
      block.RemoveOperations(i, i + 1);
    }
  }
  for (size_t i = 1; i < program.block_count(); ++i)
    if (!kept.blocks.contains(static_cast<int64_t>(i)))
      program.block(i).RemoveOperations(0, program.block(i).operations().size());
  return kept.named;
}

absl::Status AddHolder(Block& block, const char* name) {
  Variable holder;
  holder.name = name;
  holder.kind = VariableKind::kRaw;
  holder.persistable = true;
  return block.AddVariable(std::move(holder)).status();
}

Operation Transfer(const char* type, const std::string& from, const std::string& to, size_t column) {
  Operation operation;
  operation.type = type;
  operation.inputs = {{"X", {from}}};
  operation.outputs = {{"Out", {to}}};
  operation.attributes.Set("col", static_cast<int64_t>(column));
  return operation;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> Prune(const Program& program, const std::vector<std::string>& feeds,
                                               const std::vector<std::string>& targets) {
  RETURN_IF_ERROR(CheckNames(program, feeds, "feed"));
  RETURN_IF_ERROR(CheckNames(program, targets, "target"));
  std::unique_ptr<Program> pruned = CloneForTest(program);
  for (const std::string& target : targets) {  // one that only training uses, such as a gradient, went with the rest
    if (pruned->global_block().FindHere(target) == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("the target '", base::Printable(target),
                                                     "' belongs to the training alone; give one of the network"));
  }
  const Needed named =
      RemoveUnneeded(*pruned, Needed(feeds.begin(), feeds.end()), Needed(targets.begin(), targets.end()));
  for (size_t i = 0; i < pruned->block_count(); ++i)
    pruned->block(i).RemoveVariables([&](const Variable& variable) { return !named.contains(variable.name); });
  return pruned;
}

absl::StatusOr<std::unique_ptr<Program>> InferenceProgram(const Program& program, const std::vector<std::string>& feeds,
                                                          const std::vector<std::string>& targets) {
  ASSIGN_OR_RETURN(std::unique_ptr<Program> pruned, Prune(program, feeds, targets));
  Block& block = pruned->global_block();
  for (const auto& variable : block.variables()) {
    if (!variable->is_data || std::ranges::find(feeds, variable->name) != feeds.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("the targets need '", base::Printable(variable->name),
                                                   "', which is not fed; add it to feeded_var_names"));
  }
  RETURN_IF_ERROR(AddHolder(block, kFeed));
  RETURN_IF_ERROR(AddHolder(block, kFetch));
  for (size_t i = 0; i < feeds.size(); ++i)
    RETURN_IF_ERROR(InsertOperation(block, i, Transfer(kFeed, kFeed, feeds[i], i)).status());
  for (size_t i = 0; i < targets.size(); ++i)
    RETURN_IF_ERROR(AppendOperation(block, Transfer(kFetch, targets[i], kFetch, i)).status());
  return pruned;
}

std::vector<std::string> FeedsOf(const Program& program) {
  std::vector<std::string> names;
  for (const auto& operation : program.global_block().operations())
    if (operation->type == kFeed && !operation->Output("Out").empty()) names.push_back(operation->Output("Out")[0]);
  return names;
}

std::vector<std::string> FetchesOf(const Program& program) {
  std::vector<std::string> names;
  for (const auto& operation : program.global_block().operations())
    if (operation->type == kFetch && !operation->Input("X").empty()) names.push_back(operation->Input("X")[0]);
  return names;
}

}  // namespace regatta::program
