#include "data/parser/field_map.h"

#include <algorithm>

namespace regatta::data {
namespace {

absl::Status CheckLabels(const Schema& schema) {
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  if (schema.labels.empty() || std::any_of(schema.labels.begin(), schema.labels.end(), is_empty))
    return absl::InvalidArgumentError("the schema names no label slot");
  for (const std::string& real : schema.real_labels)
    if (std::find(schema.labels.begin(), schema.labels.end(), real) == schema.labels.end())
      return absl::InvalidArgumentError(
          absl::StrCat("slot '", real, "' is declared as a label that may be any number, and is no label"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FieldMap> FieldMap::Make(const Schema& schema) {
  FieldMap map;
  absl::Status status;
  auto add = [&](const std::string& name, FieldRef ref) {
    if (!map.fields_.emplace(name, ref).second && status.ok())
      status = absl::InvalidArgumentError(absl::StrCat("slot '", name, "' is declared twice"));
  };
  RETURN_IF_ERROR(CheckLabels(schema));
  for (uint32_t i = 0; i < static_cast<uint32_t>(schema.label_dim()); ++i) add(schema.labels[i], {Field::kLabel, i});
  for (uint32_t i = 0; i < schema.sparse_slots.size(); ++i) add(schema.sparse_slots[i], {Field::kSparse, i});
  if (schema.dense_dim > 0) add(schema.dense_slot, {Field::kDense});
  if (!schema.value_slot.empty()) add(schema.value_slot, {Field::kValue});
  if (!schema.weight_slot.empty()) add(schema.weight_slot, {Field::kWeight});
  const bool user_is_sparse =
      std::find(schema.sparse_slots.begin(), schema.sparse_slots.end(), schema.user_slot) != schema.sparse_slots.end();
  if (!schema.user_slot.empty() && !user_is_sparse) add(schema.user_slot, {Field::kUser});
  if (!status.ok()) return status;
  return map;
}

}  // namespace regatta::data
