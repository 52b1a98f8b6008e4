// Which part of a sample a slot's name stands for, by the Schema.
// Thread-safety: constant after construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "data/batch.h"

namespace regatta::data {

enum class Field : uint8_t { kIgnored, kLabel, kDense, kWeight, kValue, kUser, kSparse };

struct FieldRef {
  Field field = Field::kIgnored;
  uint32_t slot = 0;  // for kSparse and kLabel: which of them
};

class FieldMap {
 public:
  // An error where two parts of the schema have one name. Labels that are not read are slots like any other that the
  // schema does not declare.
  static absl::StatusOr<FieldMap> Make(const Schema& schema);

  FieldRef Find(std::string_view name) const {
    const auto it = fields_.find(base::View(name));
    return it == fields_.end() ? FieldRef{} : it->second;
  }

 private:
  absl::flat_hash_map<std::string, FieldRef> fields_;
};

}  // namespace regatta::data
