// Table configurations and a model's identity as JSON, for the manifest and for what workers and servers agree on.
// Reading takes what an older version wrote: a missing field keeps its default, a wrong type is an error that names the
// field. Of a file an unknown field is ignored; of a peer, where a setting that is not obeyed would go unnoticed, it is
// refused.
#pragma once

#include <string>

#include "base/status.h"
#include "checkpoint/json_field.h"
#include "checkpoint/model_identity.h"
#include "table/table_config.h"

namespace regatta::checkpoint {

Json ToJson(const table::SparseTableConfig& config);
Json ToJson(const table::DenseTableConfig& config);
Json ToJson(const table::ModelConfig& config);
Json ToJson(const ModelIdentity& model);

enum class UnknownFields : uint8_t { kIgnore, kRefuse };

// `where` is put in front of the name of a bad field.
absl::StatusOr<table::SparseTableConfig> SparseConfigFromJson(const JsonTree& json, const std::string& where,
                                                              UnknownFields unknown = UnknownFields::kIgnore);
absl::StatusOr<table::DenseTableConfig> DenseConfigFromJson(const JsonTree& json, const std::string& where,
                                                            UnknownFields unknown = UnknownFields::kIgnore);
absl::StatusOr<table::ModelConfig> ModelConfigFromJson(const JsonTree& json, const std::string& where,
                                                       UnknownFields unknown = UnknownFields::kIgnore);
absl::StatusOr<ModelIdentity> ModelIdentityFromJson(const JsonTree& json, const std::string& where);

}  // namespace regatta::checkpoint
