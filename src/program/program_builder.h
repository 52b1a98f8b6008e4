// Builds a network: a main program, and the startup program that gives its parameters their first values.
//   ProgramBuilder builder(main, startup, names);
//   builder.set_site({"layers.fc", "train.py", 31});
//   ASSIGN_OR_RETURN(Variable* out, layers::Fc(builder, {x}, {.size = 1}));
// Thread-safety: belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/initializer.h"
#include "program/program.h"
#include "program/unique_name.h"

namespace regatta::program {

// Variables for a slot: {"X", x}, or {"X", {a, b}}.
struct Argument {
  Argument(std::string_view slot_name, Variable* variable) : slot(slot_name), variables({variable}) {}
  Argument(std::string_view slot_name, std::vector<Variable*> list) : slot(slot_name), variables(std::move(list)) {}

  std::string slot;
  std::vector<Variable*> variables;  // nullptr are left out
};
using Arguments = std::vector<Argument>;

// fluid.ParamAttr. A layer without an initializer of its own here takes its default.
struct ParameterAttributes {
  bool wanted = true;     // false: the layer has none (bias_attr=False)
  std::string name = {};  // empty = made by the layer
  std::optional<Initializer> initializer = std::nullopt;
  ParameterTraits traits = {};
};

class ProgramBuilder {
 public:
  // All must outlive this.
  ProgramBuilder(Program& main, Program& startup, NameGenerator& names)
      : main_(main), startup_(startup), names_(names), block_(&main.global_block()) {}

  Program& main() { return main_; }
  Program& startup() { return startup_; }
  NameGenerator& names() { return names_; }

  // Where operations and temporary variables go: a block of main().
  Block& block() { return *block_; }
  void set_block(Block& block) { block_ = &block; }

  // What later operations have: the call that they come from, and their part in a step.
  const CallSite& site() const { return site_; }
  void set_site(CallSite site) { site_ = std::move(site); }
  Role role() const { return role_; }
  void set_role(Role role) { role_ = role; }
  // Of Role::kOptimize: the parameter and its gradient.
  void set_role_variables(Names variables) { role_variables_ = std::move(variables); }

  absl::StatusOr<Operation*> Append(std::string_view type, const Arguments& inputs, const Arguments& outputs,
                                    Attributes attributes = {});

  // A variable of block() with a name of "<key>_<n>", the first that is free; operations give it its shape.
  absl::StatusOr<Variable*> CreateVariable(std::string_view key, DataType dtype);
  // A persistable variable of both programs' first blocks. The name is "_generated_var_<n>" if it is empty. One of that
  // name, shape and dtype is shared.
  absl::StatusOr<Variable*> CreateState(std::string name, Shape shape, DataType dtype, const Initializer& initializer);
  // A parameter in both programs. One that the main program has already is shared: its shape and dtype must be the
  // same, and it keeps its first initializer. Without a name in `attributes` it is "<name_key>_<n>", without an
  // initializer `fallback` gives its values.
  absl::StatusOr<Variable*> CreateParameter(const ParameterAttributes& attributes, std::string_view name_key,
                                            Shape shape, DataType dtype, const Initializer& fallback);

  // The message with the call before it: "layers.fc (train.py:31): …".
  absl::Status Error(std::string_view message) const;

 private:
  // The same variable in the startup program, with the operation that gives it its value.
  absl::Status Initialize(const Variable& variable, const Initializer& initializer);

  Program& main_;
  Program& startup_;
  NameGenerator& names_;
  Block* block_;
  CallSite site_;
  Role role_ = Role::kForward;
  Names role_variables_;
};

// Operations that are made while this lives have another role.
class RoleScope {
 public:
  RoleScope(ProgramBuilder& builder, Role role) : builder_(builder), before_(builder.role()) { builder.set_role(role); }
  ~RoleScope() {
    builder_.set_role(before_);
    builder_.set_role_variables({});
  }
  RoleScope(const RoleScope&) = delete;
  RoleScope& operator=(const RoleScope&) = delete;

 private:
  ProgramBuilder& builder_;
  const Role before_;
};

// While this lives, operations go to another block of the main program.
class BlockScope {
 public:
  BlockScope(ProgramBuilder& builder, Block& block) : builder_(builder), before_(builder.block()) {
    builder.set_block(block);
  }
  ~BlockScope() { builder_.set_block(before_); }
  BlockScope(const BlockScope&) = delete;
  BlockScope& operator=(const BlockScope&) = delete;

 private:
  ProgramBuilder& builder_;
  Block& before_;
};

// One call of one layer: its name, and the variables that get their names from it.
class LayerCall {
 public:
  // `name` is the user's; if it is empty, "<type>_<n>".
  LayerCall(ProgramBuilder& builder, std::string_view type, const std::string& name = "")
      : builder_(builder), name_(name.empty() ? builder.names().Generate(type) : name) {}

  const std::string& name() const { return name_; }
  ProgramBuilder& builder() { return builder_; }

  // "fc_0.tmp_<n>"
  absl::StatusOr<Variable*> Temporary(DataType dtype) { return builder_.CreateVariable(name_ + ".tmp", dtype); }
  // "fc_0.w_<n>"; by default uniform as Xavier.
  absl::StatusOr<Variable*> Weight(const ParameterAttributes& attributes, Shape shape, DataType dtype,
                                   const Initializer& fallback = Initializer::Xavier()) {
    return builder_.CreateParameter(attributes, name_ + ".w", std::move(shape), dtype, fallback);
  }
  // "fc_0.b_<n>"; by default 0.
  absl::StatusOr<Variable*> Bias(const ParameterAttributes& attributes, Shape shape, DataType dtype) {
    return builder_.CreateParameter(attributes, name_ + ".b", std::move(shape), dtype, Initializer::Constant(0));
  }
  // An operation whose one output is a temporary variable of the first input's dtype.
  absl::StatusOr<Variable*> Apply(std::string_view type, const Arguments& inputs, Attributes attributes = {},
                                  std::string_view output = "Out");
  // x + bias along extents [begin, end) of x; x itself if no bias is wanted.
  absl::StatusOr<Variable*> AddBias(const ParameterAttributes& attributes, Variable* x, size_t begin, size_t end);
  // The operator `activation` of x; x itself if it is empty.
  absl::StatusOr<Variable*> Activate(const std::string& activation, Variable* x);

 private:
  ProgramBuilder& builder_;
  const std::string name_;
};

// A layer that is one operator with one output, as most are: names "<type>_<n>.tmp_<n>".
absl::StatusOr<Variable*> ApplyOperator(ProgramBuilder& builder, std::string_view type, const Arguments& inputs,
                                        Attributes attributes = {}, std::string_view output = "Out");

}  // namespace regatta::program
