#include "program/infer_context.h"

#include <vector>

#include "absl/strings/str_join.h"

namespace regatta::program {

Variable* InferContext::Out(std::string_view slot, size_t i) {
  const Names& names = operation_.Output(slot);
  return i < names.size() ? block_.Find(names[i]) : nullptr;
}

void InferContext::SetAt(std::string_view slot, size_t i, const Shape& shape, DataType dtype, int lod_level) {
  Variable* out = Out(slot, i);
  if (out == nullptr) return;
  out->shape = shape;
  out->dtype = dtype;
  out->lod_level = lod_level;
}

void InferContext::SetLike(std::string_view output, std::string_view input) {
  const Variable& in = In(input);
  SetKind(output, in.kind);
  Set(output, Shape(in.shape), in.dtype, in.lod_level);
}

void InferContext::SetRowsOf(std::string_view output, std::string_view input, int lod_level) {
  Shape rows = ShapeOf(input);
  if (!rows.empty()) rows[0] = kUnknownExtent;
  Set(output, rows, In(input).dtype, lod_level);
}

void InferContext::SetKind(std::string_view slot, VariableKind kind) {
  if (Variable* out = Out(slot, 0)) out->kind = kind;
}

absl::Status InferContext::Refuse(std::initializer_list<std::string_view> slots, std::string_view why) const {
  std::vector<std::string> facts;
  for (const std::string_view slot : slots)
    if (Has(slot)) facts.push_back(absl::StrCat(base::View(slot), " is ", ShapeText(ShapeOf(slot))));
  return absl::InvalidArgumentError(absl::StrCat(absl::StrJoin(facts, " and "), ": ", base::View(why)));
}

absl::Status InferContext::WantRank(std::string_view slot, size_t rank) const {
  const size_t has = ShapeOf(slot).size();
  if (has == rank || has == 0) return absl::OkStatus();
  return Refuse({slot}, absl::StrCat("want ", rank, " extents (layers.reshape changes a shape)"));
}

absl::Status InferContext::WantRankAtLeast(std::string_view slot, size_t rank) const {
  const size_t has = ShapeOf(slot).size();
  if (has >= rank || has == 0) return absl::OkStatus();
  return Refuse({slot}, absl::StrCat("want ", rank, " extents or more (layers.reshape changes a shape)"));
}

}  // namespace regatta::program
