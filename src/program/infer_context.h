// What an infer function sees of an operation: the variables in its slots. Outputs are written here only.
// Thread-safety: belongs to one thread.
// Invariant: slots and attributes were checked before, so a required slot holds its variables and every variable
// exists.
#pragma once

#include <string>
#include <string_view>

#include "program/block.h"
#include "program/op_schema.h"

namespace regatta::program {

class InferContext {
 public:
  // Both must outlive this.
  InferContext(Block& block, const Operation& operation) : block_(block), operation_(operation) {}

  const Operation& operation() const { return operation_; }
  const Attributes& attributes() const { return operation_.attributes; }
  Block& block() { return block_; }

  // How many variables the slot holds.
  size_t Count(std::string_view slot) const { return operation_.Input(slot).size(); }
  bool Has(std::string_view slot) const { return Count(slot) > 0; }
  size_t OutputCount(std::string_view slot) const { return operation_.Output(slot).size(); }

  // Variable `i` of the slot, which holds more than i.
  const Variable& In(std::string_view slot, size_t i = 0) const { return *block_.Find(operation_.Input(slot)[i]); }
  const Shape& ShapeOf(std::string_view slot, size_t i = 0) const { return In(slot, i).shape; }

  // Nothing happens if the slot holds no variable i.
  void Set(std::string_view slot, const Shape& shape, DataType dtype, int lod_level = 0) {
    SetAt(slot, 0, shape, dtype, lod_level);
  }
  void SetAt(std::string_view slot, size_t i, const Shape& shape, DataType dtype, int lod_level = 0);
  // The output is as the input: kind, shape, dtype, lod_level.
  void SetLike(std::string_view output, std::string_view input);
  // As the input, but that the number of rows is known only when the program runs.
  void SetRowsOf(std::string_view output, std::string_view input, int lod_level);
  void SetKind(std::string_view slot, VariableKind kind);

  // INVALID_ARGUMENT: "X is [-1, 13]: <why>", of all the slots that are given.
  absl::Status Refuse(std::initializer_list<std::string_view> slots, std::string_view why) const;
  // An error unless the variable has that many extents, or a shape that is not known yet.
  absl::Status WantRank(std::string_view slot, size_t rank) const;
  absl::Status WantRankAtLeast(std::string_view slot, size_t rank) const;

 private:
  Variable* Out(std::string_view slot, size_t i);

  Block& block_;
  const Operation& operation_;
};

}  // namespace regatta::program
