// Table configurations as JSON, for the manifest and for what workers and servers agree on. Reading takes what an older
// version wrote: a missing field keeps its default, an unknown one is ignored, a wrong type is an error that names the
// field.
#pragma once

#include <string>

#include "base/status.h"
#include "table/checkpoint/json_field.h"
#include "table/table_config.h"

namespace regatta::table {

Json ToJson(const SparseTableConfig& config);
Json ToJson(const DenseTableConfig& config);
Json ToJson(const ModelConfig& config);

// `where` is put in front of the name of a bad field.
absl::StatusOr<SparseTableConfig> SparseConfigFromJson(const Json& json, const std::string& where);
absl::StatusOr<DenseTableConfig> DenseConfigFromJson(const Json& json, const std::string& where);
absl::StatusOr<ModelConfig> ModelConfigFromJson(const Json& json, const std::string& where);

}  // namespace regatta::table
