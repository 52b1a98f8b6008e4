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

// What the operation reads, in its bodies too; `used` gets the blocks.
void AddReads(const Program& program, const Operation& operation, Needed& needed, std::set<int64_t>& used) {
  for (const Slot& slot : operation.inputs) needed.insert(slot.variables.begin(), slot.variables.end());
  for (const int64_t body : BodiesOf(operation)) {
    if (body <= 0 || body >= static_cast<int64_t>(program.block_count()) || !used.insert(body).second) continue;
    for (const auto& inner : program.block(body).operations()) AddReads(program, *inner, needed, used);
  }
}

bool WritesAny(const Operation& operation, const Needed& needed) {
  return std::ranges::any_of(operation.outputs, [&](const Slot& slot) {
    return std::ranges::any_of(slot.variables, [&](const std::string& name) { return needed.contains(name); });
  });
}

// Removes what is not needed; returns what the rest reads.
Needed RemoveUnneeded(Program& program, const Needed& feeds, Needed needed) {
  Block& block = program.global_block();
  std::set<int64_t> used = {0};
  for (size_t i = block.operations().size(); i-- > 0;) {
    const Operation& operation = *block.operations()[i];
    Needed wanted;
    std::ranges::set_difference(needed, feeds, std::inserter(wanted, wanted.end()));
    if (WritesAny(operation, wanted)) {
      AddReads(program, operation, needed, used);
    } else {
      block.RemoveOperations(i, i + 1);
    }
  }
  for (size_t i = 1; i < program.block_count(); ++i)
    if (!used.contains(static_cast<int64_t>(i)))
      program.block(i).RemoveOperations(0, program.block(i).operations().size());
  return needed;
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
  const Needed needed =
      RemoveUnneeded(*pruned, Needed(feeds.begin(), feeds.end()), Needed(targets.begin(), targets.end()));
  for (size_t i = 0; i < pruned->block_count(); ++i) {
    Block& block = pruned->block(i);
    Names unused;
    for (const auto& variable : block.variables())
      if (!needed.contains(variable->name) && std::ranges::find(feeds, variable->name) == feeds.end())
        unused.push_back(variable->name);
    std::erase_if(unused, [&](const std::string& name) {
      return std::ranges::any_of(block.operations(),
                                 [&](const auto& op) { return op->Reads(name) || op->Writes(name); });
    });
    for (const std::string& name : unused) block.RemoveVariable(name);
  }
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
