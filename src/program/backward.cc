#include "program/backward.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/printable.h"

namespace regatta::program {

namespace {

// Operators through which no gradient goes: their outputs are counts, places and truths.
constexpr std::string_view kWithoutGradient[] = {
    "accuracy",
    "auc",
    "less_than",
    "less_equal",
    "greater_than",
    "greater_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_not",
    "logical_xor",
    "arg_max",
    "arg_min",
    "shape",
    "size",
    "one_hot",
    "one_hot_v2",
    "is_empty",
    "isfinite",
    "isnan",
    "isinf",
    "sign",
    "floor",
    "ceil",
    "round",
    "sequence_mask",
    "fill_zeros_like",
    "increment",
    "hash",
    "crf_decoding",
    "sampling_id",
    "backward",
    "shuffle_batch",
    "fill_constant_batch_size_like",
    "fill_any_like",
    "lr_schedule",
    "precision_recall",
    "chunk_eval",
};

bool Passes(const Operation& operation) {
  return operation.role == Role::kForward &&
         std::ranges::find(kWithoutGradient, operation.type) == std::end(kWithoutGradient);
}

template <typename Visit>
void ForEachName(const Slots& slots, const Visit& visit) {
  for (const Slot& slot : slots)
    for (const std::string& name : slot.variables) visit(name);
}

// What lies between two sets of variables, in one block.
class Paths {
 public:
  Paths(Block& block, const NameSet& no_gradient) : block_(block), no_gradient_(no_gradient) {}

  bool Stops(const std::string& name) const {
    const Variable* variable = block_.Find(name);
    return variable == nullptr || variable->stop_gradient || !IsFloat(variable->dtype) || no_gradient_.contains(name) ||
           (variable->kind != VariableKind::kLodTensor && variable->kind != VariableKind::kLodTensorArray);
  }

  // All that depend on `sources` by way of variables that do not stop gradients, the sources themselves among them.
  NameSet From(const NameSet& sources) const {
    NameSet reached = sources;
    for (const auto& operation : block_.operations()) {
      if (!Passes(*operation)) continue;
      bool reads = false;
      ForEachName(operation->inputs, [&](const std::string& name) { reads = reads || reached.contains(name); });
      if (!reads) continue;
      ForEachName(operation->outputs, [&](const std::string& name) {
        if (!Stops(name)) reached.insert(name);
      });
    }
    return reached;
  }

  // The names of `among` that the targets depend on, the last use first.
  Names Towards(const NameSet& targets, const NameSet& among) const {
    NameSet needed = targets;
    Names order;
    const auto& operations = block_.operations();
    for (auto at = operations.rbegin(); at != operations.rend(); ++at) {
      if (!Passes(**at)) continue;
      bool writes = false;
      ForEachName((*at)->outputs, [&](const std::string& name) { writes = writes || needed.contains(name); });
      if (!writes) continue;
      Names inputs;
      ForEachName((*at)->inputs, [&](const std::string& name) { inputs.push_back(name); });
      for (auto name = inputs.rbegin(); name != inputs.rend(); ++name)
        if (among.contains(*name) && needed.insert(*name).second) order.push_back(*name);
    }
    return order;
  }

 private:
  Block& block_;
  const NameSet& no_gradient_;
};

// Whether the operation only looks up rows of the table, and says so.
bool LooksUpSparsely(const Operation& operation, const std::string& table) {
  if (!operation.attributes.Bool("is_sparse") && !operation.attributes.Bool("is_distributed")) return false;
  for (const char* slot : {"W", "Weight"})
    if (std::ranges::find(operation.Input(slot), table) != operation.Input(slot).end()) return true;
  return false;
}

// Whether every use of the table is such a lookup, so that its gradient is rows.
bool IsLookedUpSparsely(const Block& block, const std::string& name) {
  bool sparse = false;
  for (const auto& operation : block.operations()) {
    if (!operation->Reads(name) || operation->role != Role::kForward) continue;
    if (!LooksUpSparsely(*operation, name)) return false;
    sparse = true;
  }
  return sparse;
}

// <name>@GRAD, or if an earlier pass has it <name>@GRAD_<n>.
absl::StatusOr<Variable*> DeclareGradient(ProgramBuilder& builder, const std::string& name) {
  Block& block = builder.block();
  const Variable& of = *block.Find(name);
  Variable gradient;
  gradient.name = GradientName(name);
  while (block.FindHere(gradient.name) != nullptr) gradient.name = builder.names().Generate(GradientName(name));
  gradient.shape = of.shape;
  gradient.dtype = of.dtype;
  gradient.lod_level = of.lod_level;
  if (of.parameter && IsLookedUpSparsely(block, name)) gradient.kind = VariableKind::kSelectedRows;
  return block.AddVariable(std::move(gradient));
}

// The operation, with a gradient for each of `inputs`.
absl::StatusOr<std::vector<Variable*>> AppendPass(ProgramBuilder& builder, const std::vector<Variable*>& targets,
                                                  const Names& inputs, const std::vector<Variable*>& target_gradients) {
  std::vector<Variable*> sources, gradients;
  for (const std::string& name : inputs) {
    ASSIGN_OR_RETURN(Variable * gradient, DeclareGradient(builder, name));
    sources.push_back(builder.block().Find(name));
    gradients.push_back(gradient);
  }
  const RoleScope role(builder, Role::kBackward);
  RETURN_IF_ERROR(builder
                      .Append("backward",
                              {{"Targets", targets}, {"Inputs", sources}, {"TargetGradients", target_gradients}},
                              {{"Gradients", gradients}})
                      .status());
  return gradients;
}

// The parameters that gradients are asked for, or an error that names one that cannot have any.
absl::StatusOr<NameSet> WantedParameters(const ProgramBuilder& builder, const Program& main, const Paths& paths,
                                         const std::vector<std::string>& names) {
  NameSet wanted;
  for (const std::string& name : names) {
    const Variable* variable = main.global_block().FindHere(name);
    if (variable == nullptr || !variable->parameter) {
      return builder.Error(
          absl::StrCat("parameter_list has '", base::Printable(name), "', which is no parameter of the program"));
    }
    if (!paths.Stops(name)) wanted.insert(name);
  }
  if (!names.empty()) return wanted;
  for (const Variable* parameter : ParametersOf(main))
    if (parameter->parameter->trainable && !paths.Stops(parameter->name)) wanted.insert(parameter->name);
  return wanted;
}

// The executor stops gradients at parameters and data that are left out, and at variables with stop_gradient.
absl::Status CheckNoGradient(const ProgramBuilder& builder, const Block& block, const NameSet& no_gradient) {
  for (const std::string& name : no_gradient)
    for (const auto& operation : block.operations()) {
      const Variable* variable = block.Find(name);
      if (operation->role != Role::kForward || !operation->Writes(name) || variable == nullptr ||
          variable->stop_gradient)
        continue;
      return builder.Error(absl::StrCat("no_grad_set has '", base::Printable(name), "', which ", operation->type,
                                        " computes; want parameters and data there: set its stop_gradient instead, "
                                        "which holds for every backward pass"));
    }
  return absl::OkStatus();
}

absl::Status CheckLoss(const ProgramBuilder& builder, const Variable& loss) {
  if (loss.shape.empty() || ElementCount(loss.shape) == 1) return absl::OkStatus();
  return builder.Error(absl::StrCat("the loss '", base::Printable(loss.name), "' is ", ShapeText(loss.shape),
                                    "; want [1]: give minimize the layers.mean of it"));
}

}  // namespace

absl::StatusOr<std::vector<ParameterGradient>> AppendBackward(ProgramBuilder& builder, Variable* loss,
                                                              const std::vector<std::string>& parameters,
                                                              const NameSet& no_gradient) {
  RETURN_IF_ERROR(CheckLoss(builder, *loss));
  RETURN_IF_ERROR(CheckNoGradient(builder, builder.block(), no_gradient));
  const Paths paths(builder.block(), no_gradient);
  ASSIGN_OR_RETURN(const NameSet wanted, WantedParameters(builder, builder.main(), paths, parameters));
  NameSet sources = wanted;
  for (const auto& variable : builder.block().variables())
    if (variable->is_data && !paths.Stops(variable->name)) sources.insert(variable->name);
  Names between = paths.Towards({loss->name}, paths.From(sources));
  if (!paths.From(wanted).contains(loss->name) || between.empty()) {
    return builder.Error(
        absl::StrCat("no trainable parameter reaches the loss '", base::Printable(loss->name),
                     "', so there is nothing to train; build the network in this program, and look for "
                     "stop_gradient, trainable=False and no_grad_set"));
  }
  between.insert(between.begin(), loss->name);
  ASSIGN_OR_RETURN(const std::vector<Variable*> gradients, AppendPass(builder, {loss}, between, {}));
  std::vector<ParameterGradient> result;
  for (size_t i = 0; i < between.size(); ++i)
    if (wanted.contains(between[i])) result.push_back({builder.block().Find(between[i]), gradients[i]});
  return result;
}

absl::StatusOr<std::vector<Variable*>> AppendGradients(ProgramBuilder& builder, const std::vector<Variable*>& targets,
                                                       const std::vector<Variable*>& inputs,
                                                       const std::vector<Variable*>& target_gradients,
                                                       const NameSet& no_gradient) {
  RETURN_IF_ERROR(CheckNoGradient(builder, builder.block(), no_gradient));
  const Paths paths(builder.block(), no_gradient);
  NameSet sources, ends;
  for (const Variable* input : inputs) sources.insert(input->name);
  for (const Variable* target : targets) ends.insert(target->name);
  const NameSet reached = paths.From(sources);
  const Names between = paths.Towards(ends, reached);
  Names wanted;
  for (const Variable* input : inputs) {
    const bool found = std::ranges::find(between, input->name) != between.end() || ends.contains(input->name);
    if (found && std::ranges::find(wanted, input->name) == wanted.end()) wanted.push_back(input->name);
  }
  std::vector<Variable*> result(inputs.size());
  if (wanted.empty()) return result;
  ASSIGN_OR_RETURN(const std::vector<Variable*> gradients, AppendPass(builder, targets, wanted, target_gradients));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto found = std::ranges::find(wanted, inputs[i]->name);
    if (found != wanted.end()) result[i] = gradients[found - wanted.begin()];
  }
  return result;
}

}  // namespace regatta::program
