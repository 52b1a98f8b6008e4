// Loops and branches: operations whose body is a block of its own.
//   ASSIGN_OR_RETURN(Body body, Body::Open(builder));       // later operations go to the body
//   …
//   RETURN_IF_ERROR(CloseWhile(builder, body, condition));  // they go to the block around again
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <vector>

#include "program/program_builder.h"

namespace regatta::program::layers {

// A block of the main program that is being filled.
class Body {
 public:
  // A new block below the builder's; it becomes the builder's.
  static Body Open(ProgramBuilder& builder);

  Block& block() const { return *block_; }
  Block& around() const { return *around_; }

  // The variables of the blocks around that the body reads before it writes them, and those that it writes.
  std::vector<Variable*> Reads() const;
  std::vector<Variable*> Writes() const;

 private:
  Body(Block* block, Block* around) : block_(block), around_(around) {}

  Block* block_;
  Block* around_;
};

// layers.While: the body runs as long as `condition`, a bool [1] that the body writes, is true.
absl::Status CloseWhile(ProgramBuilder& builder, const Body& body, Variable* condition, bool is_test = false);

// The body runs if `condition`, a bool [1], is true. layers.Switch and layers.cond are made of these.
absl::Status CloseBranch(ProgramBuilder& builder, const Body& body, Variable* condition);

// layers.Switch: of several branches the first one runs whose condition is true.
//   Switch choice(builder);
//   ASSIGN_OR_RETURN(Variable* taken, choice.Case(condition));
//   const Body body = Body::Open(builder); …; RETURN_IF_ERROR(CloseBranch(builder, body, taken));
//   ASSIGN_OR_RETURN(Variable* otherwise, choice.Default()); …
class Switch {
 public:
  explicit Switch(ProgramBuilder& builder) : builder_(builder) {}

  // Whether this case is taken: its condition is true, and no case before it was.
  absl::StatusOr<Variable*> Case(Variable* condition);
  // Whether no case was. An error if there was no case.
  absl::StatusOr<Variable*> Default();

 private:
  ProgramBuilder& builder_;
  Variable* none_before_ = nullptr;
};

}  // namespace regatta::program::layers
