#include "program/layers/control_flow.h"

#include <algorithm>

namespace regatta::program::layers {

Body Body::Open(ProgramBuilder& builder) {
  Block& around = builder.block();
  Block& block = builder.main().AddBlock(around);
  builder.set_block(block);
  return Body(&block, &around);
}

namespace {

void AddOnce(std::vector<Variable*>& list, Variable* variable) {
  if (variable != nullptr && std::ranges::find(list, variable) == list.end()) list.push_back(variable);
}

absl::Status CheckCondition(const ProgramBuilder& builder, const Variable& condition) {
  if (condition.dtype == DataType::kBool && (condition.shape.empty() || ElementCount(condition.shape) == 1))
    return absl::OkStatus();
  return builder.Error(absl::StrCat("the condition '", condition.name, "' is ", TypeText(condition),
                                    "; want bool [1], as layers.less_than gives of two [1]"));
}

// The state that Fluid keeps of a body's runs.
absl::StatusOr<Variable*> CreateScope(ProgramBuilder& builder) {
  ASSIGN_OR_RETURN(Variable * scope, builder.CreateVariable("_generated_var", DataType::kFloat32));
  scope->kind = VariableKind::kRaw;
  scope->stop_gradient = true;
  return scope;
}

}  // namespace

std::vector<Variable*> Body::Reads() const {
  std::vector<Variable*> reads, written;
  for (const auto& operation : block_->operations()) {
    for (const Slot& slot : operation->inputs)
      for (const std::string& name : slot.variables) {
        if (block_->FindHere(name) != nullptr) continue;
        Variable* variable = around_->Find(name);
        if (std::ranges::find(written, variable) == written.end()) AddOnce(reads, variable);
      }
    for (const Slot& slot : operation->outputs)
      for (const std::string& name : slot.variables) AddOnce(written, around_->Find(name));
  }
  return reads;
}

std::vector<Variable*> Body::Writes() const {
  std::vector<Variable*> writes;
  for (const auto& operation : block_->operations())
    for (const Slot& slot : operation->outputs)
      for (const std::string& name : slot.variables)
        if (block_->FindHere(name) == nullptr) AddOnce(writes, around_->Find(name));
  return writes;
}

absl::Status CloseWhile(ProgramBuilder& builder, const Body& body, Variable* condition, bool is_test) {
  builder.set_block(body.around());
  RETURN_IF_ERROR(CheckCondition(builder, *condition));
  std::vector<Variable*> reads = body.Reads(), writes = body.Writes();
  std::erase(reads, condition);
  if (std::ranges::find(writes, condition) == writes.end()) {
    return builder.Error(
        absl::StrCat("the body never writes its condition '", condition->name,
                     "', so it would run for ever; end it with layers.less_than(..., cond=", condition->name, ")"));
  }
  ASSIGN_OR_RETURN(Variable * scope, CreateScope(builder));
  return builder
      .Append("while", {{"X", reads}, {"Condition", condition}}, {{"Out", writes}, {"StepScopes", scope}},
              {{"sub_block", BlockIndex{body.block().index()}}, {"is_test", is_test}})
      .status();
}

absl::Status CloseBranch(ProgramBuilder& builder, const Body& body, Variable* condition) {
  builder.set_block(body.around());
  RETURN_IF_ERROR(CheckCondition(builder, *condition));
  ASSIGN_OR_RETURN(Variable * scope, CreateScope(builder));
  return builder
      .Append("conditional_block", {{"Cond", condition}, {"Input", body.Reads()}},
              {{"Out", body.Writes()}, {"Scope", scope}},
              {{"sub_block", BlockIndex{body.block().index()}}, {"is_scalar_condition", true}})
      .status();
}

absl::StatusOr<Variable*> Switch::Case(Variable* condition) {
  RETURN_IF_ERROR(CheckCondition(builder_, *condition));
  ASSIGN_OR_RETURN(Variable * not_this, ApplyOperator(builder_, "logical_not", {{"X", condition}}));
  if (none_before_ == nullptr) {
    none_before_ = not_this;
    return condition;
  }
  Variable* before = none_before_;
  ASSIGN_OR_RETURN(none_before_, ApplyOperator(builder_, "logical_and", {{"X", before}, {"Y", not_this}}));
  return ApplyOperator(builder_, "logical_and", {{"X", before}, {"Y", condition}});
}

absl::StatusOr<Variable*> Switch::Default() {
  if (none_before_ == nullptr) return builder_.Error("Switch has a default and no case; give it a case first");
  return none_before_;
}

}  // namespace regatta::program::layers
