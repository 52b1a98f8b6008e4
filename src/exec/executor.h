// Runs a prepared program over libtorch, again and again.
//   ASSIGN_OR_RETURN(auto prepared, PreparedProgram::Make(main, {"x", "y"}, {loss->name}));
//   Executor step(prepared);
//   ASSIGN_OR_RETURN(std::vector<Value> fetched, step.Run(scope, feeds));
// Thread-safety: an executor belongs to one thread. Several may run at once over one scope; parameters are then updated
// without a lock.
// Invariant: between two runs nothing of a run is held but the memory of the scope's parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/prepared_program.h"
#include "exec/scope.h"

namespace regatta::exec {

class Executor {
 public:
  explicit Executor(std::shared_ptr<const PreparedProgram> prepared);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // feeds[i] is the value of the feed i that the program was prepared with. Returns the fetches' values, which share no
  // memory with the scope. Persistable variables that the scope does not have are made in its root.
  // INVALID_ARGUMENT: a feed that does not fit its variable, a value that does not fit an operator.
  // FAILED_PRECONDITION: a variable that has no value yet. Messages name the operation that failed; parameters may
  // have been updated before it.
  absl::StatusOr<std::vector<Value>> Run(Scope& scope, std::span<const Value> feeds);

 private:
  struct BoundOperation {
    std::vector<Value*> values;  // inputs, then outputs
    std::vector<ValueSlot> input_slots;
    std::vector<ValueSlot> output_slots;
    std::vector<BoundOperation> body;
  };

  void Bind(Scope& scope);
  absl::StatusOr<std::vector<Value>> RunBound(std::span<const Value> feeds);
  absl::Status Feed(std::span<const Value> feeds);
  void RefreshLeaves();
  BoundOperation BindOperation(const PreparedOperation& operation);
  absl::Status RunOperations(const std::vector<PreparedOperation>& operations,
                             const std::vector<BoundOperation>& bound);
  absl::Status RunOperation(const PreparedOperation& operation, const BoundOperation& bound);
  absl::Status RunBodies(const PreparedOperation& operation, const BoundOperation& bound);
  absl::Status CheckInputs(const PreparedOperation& operation, const BoundOperation& bound) const;
  void TakeCare(const PreparedOperation& operation);
  void KeepApart(const PreparedOperation& operation);
  absl::StatusOr<std::vector<Value>> Fetch();
  void Release();

  const std::shared_ptr<const PreparedProgram> prepared_;
  const uint64_t entropy_;  // for operations without a seed
  uint64_t runs_ = 0;
  uint64_t body_runs_ = 0;        // of this run
  const Scope* scope_ = nullptr;  // that values_ point into
  uint64_t stamp_ = 0;
  std::vector<Value> frame_;    // of kRun and kLeaf, by variable
  std::vector<Value*> values_;  // of all variables
  std::vector<BoundOperation> bound_;
};

struct NamedValue {
  std::string name;
  Value value;
};

// Once: a startup program, a program that is not worth keeping.
absl::StatusOr<std::vector<Value>> RunProgram(const program::Program& program, Scope& scope,
                                              const std::vector<NamedValue>& feeds,
                                              const std::vector<std::string>& fetches);

}  // namespace regatta::exec
