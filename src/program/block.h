// A block of a program: variables and operations, both in the order in which they were made.
// Thread-safety: const methods are concurrent; a block that is changed belongs to one thread.
// Invariant: a variable's address stays as long as the variable is in the block, and so does an operation's. Names
// change by RenameVariable only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "program/operation.h"
#include "program/variable.h"

namespace regatta::program {

class Block {
 public:
  // `parent` is where names are looked up that this block does not have; nullptr for the first block. It must outlive
  // this.
  Block(int index, Block* parent) : index_(index), parent_(parent) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  int index() const { return index_; }
  Block* parent() { return parent_; }
  const Block* parent() const { return parent_; }

  // In this block alone; nullptr if there is none.
  Variable* FindHere(std::string_view name);
  const Variable* FindHere(std::string_view name) const;
  // In this block or those around it; nullptr if there is none.
  Variable* Find(std::string_view name);
  const Variable* Find(std::string_view name) const;

  // ALREADY_EXISTS if this block has a variable of that name, INVALID_ARGUMENT if the name is empty.
  absl::StatusOr<Variable*> AddVariable(Variable variable);
  // NOT_FOUND if there is none, ALREADY_EXISTS if the new name is taken. Operations of this block follow.
  absl::Status RenameVariable(std::string_view from, const std::string& to);
  // Those that `unwanted` says. Operations that name them are left as they are.
  void RemoveVariables(const std::function<bool(const Variable&)>& unwanted);

  Operation& AddOperation(Operation operation) { return InsertOperation(operations_.size(), std::move(operation)); }
  // Before operation `at`; `at` <= operations().size().
  Operation& InsertOperation(size_t at, Operation operation);
  // Operations [begin, end).
  void RemoveOperations(size_t begin, size_t end);

  const std::vector<std::unique_ptr<Variable>>& variables() const { return variables_; }
  const std::vector<std::unique_ptr<Operation>>& operations() const { return operations_; }

 private:
  const int index_;
  Block* const parent_;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::unordered_map<std::string_view, Variable*> by_name_;  // keys are the variables' own names
  std::vector<std::unique_ptr<Operation>> operations_;
};

}  // namespace regatta::program
