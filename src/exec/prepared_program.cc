#include "exec/prepared_program.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "program/schema_table.h"

namespace regatta::exec {

using program::Operation;
using program::Role;
using Home = PreparedVariable::Home;

namespace {

constexpr std::string_view kBackward = "backward";

uint64_t HashName(std::string_view name) {
  uint64_t hash = 0;
  for (const char c : name) hash = base::Mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

bool Contains(const std::vector<int>& list, int variable) { return std::ranges::find(list, variable) != list.end(); }

}  // namespace

class Preparer {
 public:
  explicit Preparer(const program::Program& program) : program_(program), block_(program.global_block()) {}

  absl::StatusOr<std::shared_ptr<const PreparedProgram>> Prepare(const std::vector<std::string>& feeds,
                                                                 const std::vector<std::string>& fetches) {
    RETURN_IF_ERROR(TakeFeeds(feeds));
    RETURN_IF_ERROR(TakeBlock(block_, operations()));
    RETURN_IF_ERROR(TakeFetches(fetches));
    ChooseHomes();
    DropUnwanted();
    PlanGradients();
    PlanReleases();
    return std::shared_ptr<const PreparedProgram>(std::move(made_));
  }

 private:
  std::vector<PreparedVariable>& variables() { return made_->variables_; }
  std::vector<PreparedOperation>& operations() { return made_->operations_; }

  absl::StatusOr<int> Number(const std::string& name, std::string_view what) { return Number(block_, name, what); }

  absl::StatusOr<int> Number(const program::Block& block, const std::string& name, std::string_view what) {
    const program::Variable* variable = block.Find(name);
    if (const auto found = numbers_.find(variable); found != numbers_.end()) return found->second;
    if (variable == nullptr) {
      std::vector<std::string> names;
      for (const auto& each : block_.variables()) names.push_back(each->name);
      const std::string nearest = base::NearestName(name, names);
      return absl::NotFoundError(absl::StrCat(base::View(what), " '", base::Printable(name),
                                              "' is no variable of the program",
                                              nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?")));
    }
    const int number = static_cast<int>(variables().size());
    numbers_[variable] = number;
    variables().push_back({.declared = *variable, .home = Home::kRun, .source = -1, .reader = ""});
    return number;
  }

  absl::Status TakeFeeds(const std::vector<std::string>& feeds) {
    for (const std::string& name : feeds) {
      ASSIGN_OR_RETURN(const int variable, Number(name, "the feed"));
      if (IsFed(variable))
        return absl::InvalidArgumentError(absl::StrCat("'", base::Printable(name), "' is fed twice; feed it once"));
      made_->feeds_.push_back({variable, false});
    }
    return absl::OkStatus();
  }

  absl::Status TakeFetches(const std::vector<std::string>& fetches) {
    for (const std::string& name : fetches) {
      ASSIGN_OR_RETURN(const int variable, Number(name, "the fetch"));
      made_->fetches_.push_back(variable);
    }
    return absl::OkStatus();
  }

  bool IsFed(int variable) const {
    return std::ranges::find(made_->feeds_, variable, &PreparedFeed::variable) != made_->feeds_.end();
  }

  absl::Status TakeBlock(const program::Block& block, std::vector<PreparedOperation>& list) {
    for (const auto& operation : block.operations()) {
      if (operation->type == "feed" || operation->type == "fetch") continue;  // Make's arguments say it
      ASSIGN_OR_RETURN(PreparedOperation prepared, TakeOperation(block, *operation));
      list.push_back(std::move(prepared));
    }
    return absl::OkStatus();
  }

  absl::Status TakeBody(const Operation& operation, PreparedOperation& prepared) {
    const program::Attribute* index = operation.attributes.Find("sub_block");
    const auto* body = index ? std::get_if<program::BlockIndex>(index) : nullptr;
    if (body == nullptr || body->value < 1 || body->value >= static_cast<int64_t>(program_.block_count()))
      return absl::InvalidArgumentError(
          absl::StrCat(operation.Place(), ": sub_block is no block of the program behind the first"));
    const program::Block& block = program_.block(static_cast<size_t>(body->value));
    RETURN_IF_ERROR(TakeBlock(block, prepared.body));
    for (const auto& variable : block.variables())
      if (const auto found = numbers_.find(variable.get()); found != numbers_.end())
        prepared.body_variables.push_back(found->second);
    return absl::OkStatus();
  }

  absl::StatusOr<PreparedOperation> TakeOperation(const program::Block& block, const Operation& operation) {
    PreparedOperation prepared;
    prepared.operation = operation;
    prepared.row = FindKernel(operation.type);
    if (prepared.row == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat(operation.Place(), ": this version has no kernel for this operator, so the program cannot run"));
    }
    const program::OpSchema& schema = *program::FindSchema(operation.type);
    for (const program::Slot& slot : operation.inputs)
      RETURN_IF_ERROR(TakeSlot(block, schema.Input(slot.name)->name, slot, prepared.input_slots, prepared.inputs));
    for (const program::Slot& slot : operation.outputs)
      RETURN_IF_ERROR(TakeSlot(block, schema.Output(slot.name)->name, slot, prepared.output_slots, prepared.outputs));
    if (prepared.row->kernel == nullptr) RETURN_IF_ERROR(TakeBody(operation, prepared));
    for (const int input : prepared.inputs)
      if (variables()[input].reader.empty()) variables()[input].reader = operation.Place();
    const int64_t own = operation.attributes.Int("seed");
    prepared.is_seeded = own != 0 || program_.random_seed() != 0;
    prepared.seed =
        base::Mix64(base::Mix64(static_cast<uint64_t>(program_.random_seed())) ^ static_cast<uint64_t>(own));
    if (!operation.outputs.empty()) prepared.seed ^= HashName(operation.outputs[0].variables[0]);
    return prepared;
  }

  absl::Status TakeSlot(const program::Block& block, std::string_view name, const program::Slot& slot,
                        std::vector<PreparedSlot>& slots, std::vector<int>& list) {
    slots.push_back({name, list.size(), slot.variables.size()});
    for (const std::string& variable : slot.variables) {
      ASSIGN_OR_RETURN(const int number, Number(block, variable, base::Printable(slot.name)));
      list.push_back(number);
    }
    return absl::OkStatus();
  }

  // Operations [0, end) and those in their bodies, a body before the operation that has it.
  template <typename Visit>
  static void ForEach(std::vector<PreparedOperation>& list, size_t end, const Visit& visit) {
    for (size_t i = 0; i < end; ++i) {
      ForEach(list[i].body, list[i].body.size(), visit);
      visit(list[i]);
    }
  }

  // A value that no operation writes before it is read, and that is not fed, must be in the scope.
  void ChooseHomes() {
    std::set<int> known;
    for (const PreparedFeed& feed : made_->feeds_) known.insert(feed.variable);
    const auto need = [&](int variable) {
      if (!known.contains(variable)) variables()[variable].home = Home::kScope;
    };
    ForEach(operations(), operations().size(), [&](const PreparedOperation& operation) {
      for (const int input : operation.inputs) need(input);
      known.insert(operation.outputs.begin(), operation.outputs.end());
    });
    for (const int fetch : made_->fetches_) need(fetch);
    for (PreparedVariable& variable : variables())
      if (variable.declared.persistable) variable.home = Home::kScope;
  }

  // From the last operation to the first: outputs that nobody reads, and backward passes' gradients with their inputs.
  void DropUnwanted() {
    std::set<int> wanted(made_->fetches_.begin(), made_->fetches_.end());
    for (size_t i = operations().size(); i-- > 0;) {
      PreparedOperation& each = operations()[i];
      for (int& output : each.outputs)
        if (!wanted.contains(output) && variables()[output].home != Home::kScope) output = -1;
      if (each.operation.type == kBackward && !KeepWantedGradients(each)) {
        operations().erase(operations().begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      wanted.insert(each.inputs.begin(), each.inputs.end());
      ForEach(each.body, each.body.size(),
              [&](const PreparedOperation& inner) { wanted.insert(inner.inputs.begin(), inner.inputs.end()); });
    }
  }

  // Leaves the inputs whose gradients are wanted. False if none is.
  static bool KeepWantedGradients(PreparedOperation& backward) {
    const auto slot = std::ranges::find(backward.input_slots, "Inputs", &PreparedSlot::name);
    std::vector<int> inputs, outputs;
    for (size_t i = 0; i < backward.outputs.size(); ++i) {
      if (backward.outputs[i] < 0) continue;
      inputs.push_back(backward.inputs[slot->first + i]);
      outputs.push_back(backward.outputs[i]);
    }
    if (outputs.empty()) return false;
    const auto first = backward.inputs.begin() + static_cast<std::ptrdiff_t>(slot->first);
    const auto gone = slot->count - inputs.size();
    backward.inputs.erase(first, first + static_cast<std::ptrdiff_t>(slot->count));
    backward.inputs.insert(backward.inputs.begin() + static_cast<std::ptrdiff_t>(slot->first), inputs.begin(),
                           inputs.end());
    slot->count = inputs.size();
    for (PreparedSlot& other : backward.input_slots)
      if (other.first > slot->first) other.first -= gone;
    backward.outputs = std::move(outputs);
    backward.output_slots[0].count = backward.outputs.size();
    return true;
  }

  // The operations before the last backward pass are recorded, and begin at the variables whose gradients are wanted.
  void PlanGradients() {
    size_t end = operations().size();
    while (end > 0 && operations()[end - 1].operation.type != kBackward) --end;
    if (end == 0) return;
    std::set<int> wanted;
    std::set<std::string> stopped;
    for (size_t i = 0; i < end; ++i) {
      PreparedOperation& each = operations()[i];
      each.records = each.operation.role == Role::kForward || each.operation.role == Role::kBackward;
      ForEach(each.body, each.body.size(), [&](PreparedOperation& inner) { inner.records = each.records; });
      if (each.operation.type != kBackward) continue;
      each.keeps_record = i + 1 < end;
      const auto slot = std::ranges::find(each.input_slots, "Inputs", &PreparedSlot::name);
      for (size_t k = 0; k < slot->count; ++k) wanted.insert(each.inputs[slot->first + k]);
      const auto& names = each.operation.attributes.Strings("no_gradient");
      stopped.insert(names.begin(), names.end());
    }
    for (PreparedFeed& feed : made_->feeds_) feed.gradient_wanted = wanted.contains(feed.variable);
    TakeCare(end, wanted, stopped);
    MakeLeaves(end, wanted);
  }

  void TakeCare(size_t end, const std::set<int>& wanted, const std::set<std::string>& stopped) {
    ForEach(operations(), end, [&](PreparedOperation& each) {
      if (!each.records || each.operation.type == kBackward) return;
      for (const int output : each.outputs) {
        if (output < 0) continue;
        const PreparedVariable& variable = variables()[output];
        const bool stops = variable.declared.stop_gradient || stopped.contains(variable.declared.name);
        if (stops) each.cares.push_back({output, OutputCare::Kind::kDetach});
        if (wanted.contains(output)) each.cares.push_back({output, OutputCare::Kind::kBeginHere});
        if (variable.home == Home::kScope && !Contains(made_->recorded_in_scope_, output))
          made_->recorded_in_scope_.push_back(output);
      }
    });
  }

  // Recorded operations read parameters by way of leaves.
  void MakeLeaves(size_t end, const std::set<int>& wanted) {
    for (const int variable : wanted) {
      if (variables()[variable].home != Home::kScope || Contains(made_->recorded_in_scope_, variable)) continue;
      const int leaf = static_cast<int>(variables().size());
      PreparedVariable made = variables()[variable];
      made.home = Home::kLeaf;
      made.source = variable;
      variables().push_back(std::move(made));
      ForEach(operations(), end, [&](PreparedOperation& each) {
        if (each.records) std::ranges::replace(each.inputs, variable, leaf);
      });
    }
  }

  void PlanReleases() {
    std::set<int> later(made_->fetches_.begin(), made_->fetches_.end());
    for (size_t i = operations().size(); i-- > 0;) {
      PreparedOperation& each = operations()[i];
      for (const std::vector<int>* list : {&each.inputs, &each.outputs}) {
        for (const int variable : *list) {
          if (variable < 0 || variables()[variable].home != Home::kRun) continue;
          if (later.insert(variable).second) each.last_reads.push_back(variable);
        }
      }
    }
  }

  const program::Program& program_;
  const program::Block& block_;
  std::unordered_map<const program::Variable*, int> numbers_;
  std::unique_ptr<PreparedProgram> made_{new PreparedProgram()};
};

absl::StatusOr<std::shared_ptr<const PreparedProgram>> PreparedProgram::Make(const program::Program& program,
                                                                             const std::vector<std::string>& feeds,
                                                                             const std::vector<std::string>& fetches) {
  return Preparer(program).Prepare(feeds, fetches);
}

}  // namespace regatta::exec
