// A kernel computes one operator: values in, values out. It knows neither programs nor scopes, so that an operation of
// a program and a call that is made at once run the same one.
//   absl::Status Relu(KernelCall& call) { return call.Give(at::relu(call.In("X"))); }
// What libtorch throws passes through a kernel; who calls it makes a Status of it.
// Thread-safety: a call belongs to one thread; kernels are pure but for the values of their call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/value.h"
#include "program/attribute.h"

namespace regatta::exec {

// The values of a slot. Of an output nullptr stands for one that nobody wants.
struct ValueSlot {
  std::string_view name;
  std::span<Value* const> values;
};

class KernelCall {
 public:
  // All must outlive this.
  KernelCall(const program::Attributes& attributes, std::span<const ValueSlot> inputs,
             std::span<const ValueSlot> outputs)
      : attributes_(attributes), inputs_(inputs), outputs_(outputs) {}

  const program::Attributes& attributes() const { return attributes_; }
  bool Bool(std::string_view name) const { return attributes_.Bool(name); }
  int64_t Int(std::string_view name) const { return attributes_.Int(name); }
  double Float(std::string_view name) const { return attributes_.Float(name); }
  const std::string& String(std::string_view name) const { return attributes_.String(name); }
  const std::vector<int64_t>& Ints(std::string_view name) const { return attributes_.Ints(name); }

  // How many values the input slot holds.
  size_t Count(std::string_view slot) const { return Inputs(slot).size(); }
  bool Has(std::string_view slot) const { return Count(slot) > 0; }
  // Value `i` of the slot as a dense tensor; an undefined one if it is another value, or there is none.
  const torch::Tensor& In(std::string_view slot, size_t i = 0) const;
  const Lod& LodOf(std::string_view slot, size_t i = 0) const;
  // nullptr if there is none.
  const Value* InValue(std::string_view slot, size_t i = 0) const;
  // nullptr if it is another value.
  const SelectedRows* InRows(std::string_view slot, size_t i = 0) const;
  // nullptr if it is another value.
  const TensorArray* InArray(std::string_view slot) const;
  // All of the slot, which holds dense tensors.
  std::vector<torch::Tensor> Ins(std::string_view slot) const;

  bool Wants(std::string_view slot, size_t i = 0) const { return OutValue(slot, i) != nullptr; }
  // Nothing happens if nobody wants the output.
  void SetOut(std::string_view slot, torch::Tensor tensor, Lod lod = {}, size_t i = 0);
  void SetOut(std::string_view slot, SelectedRows rows, size_t i = 0);
  // The output as an array, which keeps what it has; nullptr if nobody wants it.
  TensorArray* OutArray(std::string_view slot);
  // Out, with the LoD of X if it has as many rows. The last line of most kernels.
  absl::Status Give(torch::Tensor out) { return Give("Out", std::move(out), "X"); }
  absl::Status Give(std::string_view output, torch::Tensor out, std::string_view lod_of);

  // The tensor behind `output`, to be changed in place: that of `input` if both are one variable, as in an optimizer,
  // else a copy of it that becomes the output's.
  torch::Tensor Update(std::string_view input, std::string_view output);

  // Of this operation in this run: seeds a generator.
  uint64_t seed() const { return seed_; }
  void set_seed(uint64_t seed) { seed_ = seed; }
  at::Generator Generator() const;

  // Whether another backward pass follows, which needs the recorded operations again.
  bool keeps_record() const { return keeps_record_; }
  void set_keeps_record(bool keeps) { keeps_record_ = keeps; }

 private:
  std::span<Value* const> Inputs(std::string_view slot) const;
  Value* OutValue(std::string_view slot, size_t i) const;

  const program::Attributes& attributes_;
  std::span<const ValueSlot> inputs_;
  std::span<const ValueSlot> outputs_;
  uint64_t seed_ = 0;
  bool keeps_record_ = false;
};

using Kernel = absl::Status (*)(KernelCall& call);

}  // namespace regatta::exec
