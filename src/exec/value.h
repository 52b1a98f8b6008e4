// What a variable of a program holds while it runs: a dense tensor with its LoD, rows of a larger tensor, an array of
// tensors, or nothing.
// Thread-safety: as a container; copies share the tensors' memory.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "exec/lod.h"
#include "model/tensor.h"

namespace regatta::exec {

struct LodTensor {
  torch::Tensor tensor;
  Lod lod;
};

// Rows of a tensor of `height` rows: row rows[i] is values[i]. A row may occur more than once; then its values add up.
struct SelectedRows {
  torch::Tensor rows;    // int64 [n]
  torch::Tensor values;  // [n, …]
  int64_t height = 0;
};

using TensorArray = std::vector<LodTensor>;

class Value {
 public:
  Value() = default;
  explicit Value(torch::Tensor tensor, Lod lod = {}) { Set(std::move(tensor), std::move(lod)); }
  explicit Value(SelectedRows rows) : held_(std::move(rows)) {}
  explicit Value(TensorArray array) : held_(std::move(array)) {}

  bool empty() const { return std::holds_alternative<std::monostate>(held_); }
  void Clear() { held_.emplace<std::monostate>(); }

  // An undefined tensor empties the value.
  void Set(torch::Tensor tensor, Lod lod = {}) {
    if (!tensor.defined()) return Clear();
    held_ = LodTensor{std::move(tensor), std::move(lod)};
  }
  void Set(SelectedRows rows) { held_ = std::move(rows); }

  // nullptr if the value is another one.
  LodTensor* dense() { return std::get_if<LodTensor>(&held_); }
  const LodTensor* dense() const { return std::get_if<LodTensor>(&held_); }
  SelectedRows* rows() { return std::get_if<SelectedRows>(&held_); }
  const SelectedRows* rows() const { return std::get_if<SelectedRows>(&held_); }
  TensorArray* array() { return std::get_if<TensorArray>(&held_); }
  const TensorArray* array() const { return std::get_if<TensorArray>(&held_); }

 private:
  std::variant<std::monostate, LodTensor, SelectedRows, TensorArray> held_;
};

}  // namespace regatta::exec
