#include "data/parser/field_map.h"

#include <algorithm>

namespace regatta::data {

absl::StatusOr<FieldMap> FieldMap::Make(const Schema& schema) {
  FieldMap map;
  absl::Status status;
  auto add = [&](const std::string& name, FieldRef ref) {
    if (!map.fields_.emplace(name, ref).second && status.ok())
      status = absl::InvalidArgumentError(absl::StrCat("slot '", name, "' is declared twice"));
  };
  if (schema.label.empty()) return absl::InvalidArgumentError("the schema names no label slot");
  add(schema.label, {Field::kLabel});
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
