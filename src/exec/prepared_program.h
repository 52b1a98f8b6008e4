// A program made ready to run with certain feeds and fetches: operations have their kernels, names are numbers, and it
// is known which values are freed when, which gradients are wanted, and what autograd has to record for them.
// Thread-safety: const after Make, so threads may share one. Invariant: it keeps nothing of the program that it was
// made of; a program that was changed is prepared anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/kernel_table.h"
#include "program/program.h"

namespace regatta::exec {

struct PreparedVariable {
  // kScope: in the scope that the user gives. kRun: made anew in every run. kLeaf: a parameter of the scope as autograd
  // sees it, with the same memory.
  enum class Home : uint8_t { kScope, kRun, kLeaf };

  program::Variable declared;
  Home home = Home::kRun;
  int source = -1;     // of kLeaf: the variable in the scope
  std::string reader;  // Place() of the first operation that reads it; empty = none
};

// Variables [first, first + count) of an operation's list.
struct PreparedSlot {
  std::string_view name;
  size_t first = 0;
  size_t count = 0;
};

// What happens to an output before autograd sees its readers.
struct OutputCare {
  // kDetach: no gradient goes through it. kBeginHere: a gradient to it is wanted, even if nothing before it has one.
  enum class Kind : uint8_t { kDetach, kBeginHere };
  int variable = 0;
  Kind kind = Kind::kDetach;
};

struct PreparedOperation {
  program::Operation operation;
  const KernelRow* row = nullptr;
  std::vector<PreparedSlot> input_slots;
  std::vector<PreparedSlot> output_slots;
  std::vector<int> inputs;   // variables
  std::vector<int> outputs;  // variables; -1 = nobody wants it
  bool records = false;      // autograd is on
  bool keeps_record = false;
  uint64_t seed = 0;       // of program, operation and name; a run adds its number
  bool is_seeded = false;  // false: neither program nor operation has a seed, so every executor has its own
  std::vector<OutputCare> cares;
  std::vector<int> last_reads;  // variables of kRun that nothing needs afterwards
  // Of while and conditional_block: the operations of their block, and its variables, which every run of it makes anew.
  std::vector<PreparedOperation> body;
  std::vector<int> body_variables;
};

struct PreparedFeed {
  int variable = 0;
  bool gradient_wanted = false;
};

class PreparedProgram {
 public:
  // The first block. NOT_FOUND: a feed or fetch that the program does not have. INVALID_ARGUMENT: two feeds of one
  // name. UNIMPLEMENTED: an operator without a kernel.
  static absl::StatusOr<std::shared_ptr<const PreparedProgram>> Make(const program::Program& program,
                                                                     const std::vector<std::string>& feeds,
                                                                     const std::vector<std::string>& fetches);

  const std::vector<PreparedVariable>& variables() const { return variables_; }
  const std::vector<PreparedOperation>& operations() const { return operations_; }
  const std::vector<PreparedFeed>& feeds() const { return feeds_; }  // in the order of Make's
  const std::vector<int>& fetches() const { return fetches_; }       // variables
  // Of kScope, written where autograd records: they must not keep what it recorded.
  const std::vector<int>& recorded_in_scope() const { return recorded_in_scope_; }

 private:
  friend class Preparer;
  PreparedProgram() = default;

  std::vector<PreparedVariable> variables_;
  std::vector<PreparedOperation> operations_;
  std::vector<PreparedFeed> feeds_;
  std::vector<int> fetches_;
  std::vector<int> recorded_in_scope_;
};

}  // namespace regatta::exec
