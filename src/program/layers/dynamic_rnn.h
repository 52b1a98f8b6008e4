// layers.DynamicRNN: a body that runs once a step of a batch of sequences, of the longest first, so that every step
// works on those sequences that still have one.
//   DynamicRnn rnn(builder);
//   RETURN_IF_ERROR(rnn.Begin());
//   ASSIGN_OR_RETURN(Variable* word, rnn.StepInput(sentence));
//   ASSIGN_OR_RETURN(Variable* before, rnn.Memory({.shape = {200}}));
//   … hidden …
//   RETURN_IF_ERROR(rnn.UpdateMemory(before, hidden));
//   RETURN_IF_ERROR(rnn.Output({hidden}));
//   ASSIGN_OR_RETURN(std::vector<Variable*> outputs, rnn.End());
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "program/layers/control_flow.h"

namespace regatta::program::layers {

struct MemoryOptions {
  Variable* init = nullptr;  // a row a sequence; without it `shape` filled with `value`
  Shape shape = {};          // of a sequence's row
  double value = 0;
  DataType dtype = DataType::kFloat32;
  bool need_reorder = false;  // init is in the order of the batch
};

class DynamicRnn {
 public:
  explicit DynamicRnn(ProgramBuilder& builder) : builder_(builder), layer_(builder, "dynamic_rnn") {}

  // Operations that follow go to the body.
  absl::Status Begin();
  // The step's rows of a sequence input.
  absl::StatusOr<Variable*> StepInput(Variable* x, int64_t level = 0);
  // The rows of x for those sequences that still have a step.
  absl::StatusOr<Variable*> StaticInput(Variable* x);
  // What UpdateMemory gave it in the step before; a step input comes first.
  absl::StatusOr<Variable*> Memory(const MemoryOptions& options);
  absl::Status UpdateMemory(Variable* memory, Variable* next);
  absl::Status Output(const std::vector<Variable*>& outputs);
  // The outputs as sequences. Operations go to the block around again.
  absl::StatusOr<std::vector<Variable*>> End();

 private:
  // While it lives, operations go to the block around the body.
  BlockScope Outside() { return BlockScope(builder_, body_->around()); }
  absl::Status WantBody(const char* call) const;
  absl::Status WantStepInput(const char* call) const;
  absl::StatusOr<Variable*> NewArray(DataType dtype);
  absl::StatusOr<Variable*> Read(Variable* array);
  absl::Status Write(Variable* value, Variable* array);
  absl::StatusOr<Variable*> Shrink(Variable* value);
  absl::Status MakeRankTable(Variable* x, int64_t level);
  absl::StatusOr<Variable*> FilledMemory(const MemoryOptions& options);

  ProgramBuilder& builder_;
  LayerCall layer_;
  std::optional<Body> body_;
  Variable* step_ = nullptr;  // int64 [1]
  Variable* zero_ = nullptr;
  Variable* condition_ = nullptr;
  Variable* rank_table_ = nullptr;
  Variable* longest_ = nullptr;
  Variable* first_array_ = nullptr;
  std::map<Variable*, Variable*> memories_;  // the array of each
  std::vector<std::pair<Variable*, Variable*>> updates_;
  std::vector<Variable*> outputs_;  // arrays
};

}  // namespace regatta::program::layers
