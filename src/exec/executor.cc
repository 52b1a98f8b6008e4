#include "exec/executor.h"

#include <algorithm>
#include <exception>
#include <random>

#include "base/hash.h"
#include "base/printable.h"
#include "exec/feed_check.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

using Home = PreparedVariable::Home;

uint64_t Entropy() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

// The first line: what follows are frames of C++, which say nothing to a user.
absl::Status Thrown(const std::exception& thrown) {
  const auto* torch = dynamic_cast<const c10::Error*>(&thrown);
  std::string text = torch ? torch->what_without_backtrace() : thrown.what();
  text.resize(std::min(text.find('\n'), text.size()));
  return absl::InvalidArgumentError(absl::StrCat("libtorch refuses it: ", base::Printable(text)));
}

bool IsShared(const torch::Tensor& tensor) { return tensor.has_storage() && tensor.storage().use_count() > 1; }

// Without the record of what made it, and with memory of its own.
torch::Tensor Own(const torch::Tensor& tensor) {
  torch::Tensor own = tensor.detach();
  if (!own.is_contiguous()) return own.contiguous();
  // `tensor` and `own` are one storage: more than those two is somebody else.
  return tensor.storage().use_count() > 2 ? own.clone() : own;
}

// A leaf still stands for the tensor if it has the same memory, read in the same way.
bool StandsFor(const torch::Tensor& leaf, const torch::Tensor& tensor) {
  return leaf.defined() && leaf.storage().unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl() &&
         leaf.storage_offset() == tensor.storage_offset() && leaf.sizes() == tensor.sizes() &&
         leaf.strides() == tensor.strides() && leaf.scalar_type() == tensor.scalar_type();
}

absl::Status NoValue(const PreparedVariable& variable) {
  const program::Variable& declared = variable.declared;
  const std::string name = absl::StrCat("the variable '", base::Printable(declared.name), "'");
  if (declared.is_data) return absl::FailedPreconditionError(absl::StrCat(name, " was not fed; feed it"));
  if (declared.persistable) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " has no value; run the startup program first, in the same scope, or load it"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(name, " has no value; no operation before writes it, and it was not fed"));
}

}  // namespace

Executor::Executor(std::shared_ptr<const PreparedProgram> prepared)
    : prepared_(std::move(prepared)), entropy_(Entropy()) {
  frame_.resize(prepared_->variables().size());
  values_.resize(prepared_->variables().size());
}

Executor::BoundOperation Executor::BindOperation(const PreparedOperation& operation) {
  BoundOperation bound;
  for (const int input : operation.inputs) bound.values.push_back(values_[input]);
  for (const int output : operation.outputs) bound.values.push_back(output < 0 ? nullptr : values_[output]);
  const std::span<Value* const> all = bound.values;
  for (const PreparedSlot& slot : operation.input_slots)
    bound.input_slots.push_back({slot.name, all.subspan(slot.first, slot.count)});
  for (const PreparedSlot& slot : operation.output_slots)
    bound.output_slots.push_back({slot.name, all.subspan(operation.inputs.size() + slot.first, slot.count)});
  for (const PreparedOperation& inner : operation.body) bound.body.push_back(BindOperation(inner));
  return bound;
}

void Executor::Bind(Scope& scope) {
  if (scope_ == &scope && stamp_ == scope.stamp()) return;
  const auto& variables = prepared_->variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    values_[i] = &frame_[i];
    if (variables[i].home != Home::kScope) continue;
    Value* found = scope.Find(variables[i].declared.name);
    if (found == nullptr && variables[i].declared.persistable) found = &scope.root().Var(variables[i].declared.name);
    if (found != nullptr) values_[i] = found;
  }
  bound_.clear();
  for (const PreparedOperation& operation : prepared_->operations()) bound_.push_back(BindOperation(operation));
  scope_ = &scope;
  stamp_ = scope.stamp();
}

absl::Status Executor::Feed(std::span<const Value> feeds) {
  if (feeds.size() != prepared_->feeds().size()) {
    return absl::InvalidArgumentError(absl::StrCat("the program was prepared for ", prepared_->feeds().size(),
                                                   " feeds and gets ", feeds.size(), "; give it a value for each"));
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const PreparedFeed& feed = prepared_->feeds()[i];
    const PreparedVariable& variable = prepared_->variables()[feed.variable];
    RETURN_IF_ERROR(CheckFeed(variable, feeds[i]));
    Value& value = *values_[feed.variable];
    value = feeds[i];
    LodTensor* dense = value.dense();
    if (dense == nullptr) continue;
    if (variable.home == Home::kScope) dense->tensor = dense->tensor.clone();
    if (feed.gradient_wanted) dense->tensor = dense->tensor.detach().set_requires_grad(true);
  }
  return absl::OkStatus();
}

void Executor::RefreshLeaves() {
  const auto& variables = prepared_->variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].home != Home::kLeaf) continue;
    const LodTensor* source = values_[variables[i].source]->dense();
    if (source == nullptr) {
      frame_[i].Clear();
      continue;
    }
    const LodTensor* leaf = frame_[i].dense();
    if (leaf != nullptr && StandsFor(leaf->tensor, source->tensor)) continue;
    // variable_data has a version counter of its own: an update in place between two backward passes is no error.
    frame_[i].Set(source->tensor.variable_data().set_requires_grad(true), source->lod);
  }
}

absl::Status Executor::CheckInputs(const PreparedOperation& operation, const BoundOperation& bound) const {
  for (size_t k = 0; k < operation.inputs.size(); ++k) {
    const Value& value = *bound.values[k];
    const PreparedVariable& variable = prepared_->variables()[operation.inputs[k]];
    if (value.empty()) return NoValue(variable);
    if (value.rows() != nullptr && operation.row->accepts != Accepts::kRows) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", base::Printable(variable.declared.name),
                       "' is selected rows, the gradient of a sparse lookup, and this operator takes tensors only; "
                       "leave is_sparse out, or get_tensor_from_selected_rows makes a tensor of it"));
    }
  }
  return absl::OkStatus();
}

void Executor::TakeCare(const PreparedOperation& operation) {
  for (const OutputCare& care : operation.cares) {
    LodTensor* dense = values_[care.variable]->dense();
    if (dense == nullptr) continue;
    const bool begins = care.kind == OutputCare::Kind::kBeginHere;
    if (dense->tensor.requires_grad() == begins) continue;
    dense->tensor = dense->tensor.detach();
    if (begins && dense->tensor.is_floating_point()) dense->tensor.set_requires_grad(true);
  }
}

// What lives in the scope is updated in place, so it shares its memory with nobody.
void Executor::KeepApart(const PreparedOperation& operation) {
  for (const int output : operation.outputs) {
    if (output < 0 || prepared_->variables()[output].home != Home::kScope) continue;
    LodTensor* dense = values_[output]->dense();
    if (dense == nullptr || !IsShared(dense->tensor)) continue;
    const auto is_source = [&](int input) { return values_[input] == values_[output]; };
    if (std::ranges::any_of(operation.inputs, is_source) && !operation.records) continue;
    dense->tensor = dense->tensor.clone();
  }
}

absl::Status Executor::RunOperation(const PreparedOperation& operation, const BoundOperation& bound) {
  if (operation.row->kernel == nullptr) {
    RETURN_IF_ERROR(RunBodies(operation, bound));
  } else {
    RETURN_IF_ERROR(CheckInputs(operation, bound));
    KernelCall call(operation.operation.attributes, bound.input_slots, bound.output_slots);
    call.set_seed(base::Mix64(operation.seed + runs_ + (operation.is_seeded ? 0 : entropy_)) + body_runs_);
    call.set_keeps_record(operation.keeps_record);
    torch::AutoGradMode grad_mode(operation.records);
    RETURN_IF_ERROR(operation.row->kernel(call));
    TakeCare(operation);
    KeepApart(operation);
  }
  for (const int variable : operation.last_reads) frame_[variable].Clear();
  return absl::OkStatus();
}

absl::Status Executor::RunBodies(const PreparedOperation& operation, const BoundOperation& bound) {
  const bool loops = operation.operation.type == "while";
  const std::string_view slot = loops ? "Condition" : "Cond";
  const auto found = std::ranges::find(bound.input_slots, slot, &ValueSlot::name);
  while (true) {
    const LodTensor* condition = found->values[0]->dense();
    if (condition == nullptr || condition->tensor.numel() != 1)
      return absl::InvalidArgumentError(absl::StrCat(base::View(slot), " is not one truth; want bool [1]"));
    if (FirstElement(condition->tensor) == 0) return absl::OkStatus();
    ++body_runs_;
    for (const int variable : operation.body_variables) frame_[variable].Clear();
    RETURN_IF_ERROR(RunOperations(operation.body, bound.body));
    if (!loops) return absl::OkStatus();
  }
}

absl::Status Executor::RunOperations(const std::vector<PreparedOperation>& operations,
                                     const std::vector<BoundOperation>& bound) {
  size_t i = 0;
  absl::Status status;
  try {
    for (; i < bound.size() && status.ok(); ++i) status = RunOperation(operations[i], bound[i]);
    if (!status.ok()) --i;
  } catch (const std::exception& thrown) {
    status = Thrown(thrown);
  }
  return status.ok() ? status : base::Annotate(status, operations[i].operation.Place());
}

absl::StatusOr<std::vector<Value>> Executor::Fetch() {
  std::vector<Value> fetched(prepared_->fetches().size());
  for (size_t i = 0; i < fetched.size(); ++i) {
    const int variable = prepared_->fetches()[i];
    const Value& value = *values_[variable];
    if (value.empty()) return base::Annotate(NoValue(prepared_->variables()[variable]), "fetch");
    if (const LodTensor* dense = value.dense()) {
      fetched[i] = Value(Own(dense->tensor), dense->lod);
    } else if (const SelectedRows* rows = value.rows()) {
      fetched[i] = Value(SelectedRows{Own(rows->rows), Own(rows->values), rows->height});
    } else {
      TensorArray array = *value.array();
      for (LodTensor& each : array)
        if (each.tensor.defined()) each.tensor = Own(each.tensor);
      fetched[i] = Value(std::move(array));
    }
  }
  return fetched;
}

void Executor::Release() {
  for (const int variable : prepared_->recorded_in_scope()) {
    LodTensor* dense = values_[variable]->dense();
    if (dense != nullptr && dense->tensor.requires_grad()) dense->tensor = dense->tensor.detach();
  }
  const auto& variables = prepared_->variables();
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i].home != Home::kLeaf) frame_[i].Clear();
}

absl::StatusOr<std::vector<Value>> Executor::RunBound(std::span<const Value> feeds) {
  try {
    RETURN_IF_ERROR(Feed(feeds));
    RefreshLeaves();
    body_runs_ = 0;
    RETURN_IF_ERROR(RunOperations(prepared_->operations(), bound_));
    return Fetch();
  } catch (const std::exception& thrown) {  // no memory for a copy
    return Thrown(thrown);
  }
}

absl::StatusOr<std::vector<Value>> Executor::Run(Scope& scope, std::span<const Value> feeds) {
  Bind(scope);
  absl::StatusOr<std::vector<Value>> fetched = RunBound(feeds);
  ++runs_;
  Release();
  return fetched;
}

absl::StatusOr<std::vector<Value>> RunProgram(const program::Program& program, Scope& scope,
                                              const std::vector<NamedValue>& feeds,
                                              const std::vector<std::string>& fetches) {
  std::vector<std::string> names;
  std::vector<Value> values;
  for (const NamedValue& feed : feeds) {
    names.push_back(feed.name);
    values.push_back(feed.value);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const PreparedProgram> prepared, PreparedProgram::Make(program, names, fetches));
  return Executor(std::move(prepared)).Run(scope, values);
}

}  // namespace regatta::exec
