#include "exec/kernel.h"

#include <ATen/CPUGeneratorImpl.h>

namespace regatta::exec {

namespace {

std::span<Value* const> ValuesOf(std::span<const ValueSlot> slots, std::string_view name) {
  for (const ValueSlot& slot : slots)
    if (slot.name == name) return slot.values;
  return {};
}

}  // namespace

std::span<Value* const> KernelCall::Inputs(std::string_view slot) const { return ValuesOf(inputs_, slot); }

const Value* KernelCall::InValue(std::string_view slot, size_t i) const {
  const std::span<Value* const> values = Inputs(slot);
  return i < values.size() ? values[i] : nullptr;
}

Value* KernelCall::OutValue(std::string_view slot, size_t i) const {
  const std::span<Value* const> values = ValuesOf(outputs_, slot);
  return i < values.size() ? values[i] : nullptr;
}

const torch::Tensor& KernelCall::In(std::string_view slot, size_t i) const {
  static const torch::Tensor kNone;
  const Value* value = InValue(slot, i);
  const LodTensor* dense = value ? value->dense() : nullptr;
  return dense ? dense->tensor : kNone;
}

const Lod& KernelCall::LodOf(std::string_view slot, size_t i) const {
  static const Lod kNone;
  const Value* value = InValue(slot, i);
  const LodTensor* dense = value ? value->dense() : nullptr;
  return dense ? dense->lod : kNone;
}

const SelectedRows* KernelCall::InRows(std::string_view slot, size_t i) const {
  const Value* value = InValue(slot, i);
  return value ? value->rows() : nullptr;
}

const TensorArray* KernelCall::InArray(std::string_view slot) const {
  const Value* value = InValue(slot, 0);
  return value ? value->array() : nullptr;
}

TensorArray* KernelCall::OutArray(std::string_view slot) {
  Value* value = OutValue(slot, 0);
  if (value == nullptr) return nullptr;
  if (value->array() == nullptr) *value = Value(TensorArray());
  return value->array();
}

std::vector<torch::Tensor> KernelCall::Ins(std::string_view slot) const {
  std::vector<torch::Tensor> tensors(Count(slot));
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = In(slot, i);
  return tensors;
}

void KernelCall::SetOut(std::string_view slot, torch::Tensor tensor, Lod lod, size_t i) {
  if (Value* value = OutValue(slot, i)) value->Set(std::move(tensor), std::move(lod));
}

void KernelCall::SetOut(std::string_view slot, SelectedRows rows, size_t i) {
  if (Value* value = OutValue(slot, i)) value->Set(std::move(rows));
}

absl::Status KernelCall::Give(std::string_view output, torch::Tensor out, std::string_view lod_of) {
  const torch::Tensor& from = In(lod_of);
  const bool same_rows = from.defined() && from.dim() > 0 && out.dim() > 0 && from.size(0) == out.size(0);
  SetOut(output, std::move(out), same_rows ? Lod(LodOf(lod_of)) : Lod());
  return absl::OkStatus();
}

torch::Tensor KernelCall::Update(std::string_view input, std::string_view output) {
  const torch::Tensor& tensor = In(input);
  Value* out = OutValue(output, 0);
  if (out == nullptr || out == InValue(input)) return tensor;
  torch::Tensor copy = tensor.clone();
  out->Set(copy, LodOf(input));
  return copy;
}

at::Generator KernelCall::Generator() const { return at::detail::createCPUGenerator(seed_); }

}  // namespace regatta::exec
