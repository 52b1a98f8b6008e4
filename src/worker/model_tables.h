// The tables of a model: its declarations turned into table configurations.
// Thread-safety: pure functions.
#pragma once

#include "base/config.h"
#include "base/status.h"
#include "checkpoint/model_identity.h"
#include "settings/optimizer.h"
#include "settings/run_config.h"
#include "table/table_config.h"
#include "train/net_spec.h"

namespace regatta::worker {

// Sparse tables are in the order in which lookups first name them. INVALID_ARGUMENT if the declaration cannot be.
absl::StatusOr<table::ModelConfig> TablesOf(const train::NetSpec& spec, const settings::OptimizerOptions& optimizer,
                                            uint64_t seed);

// The same with what table_parameters says of each table.
absl::StatusOr<table::ModelConfig> ConfigureTables(const train::NetSpec& spec, const settings::RunConfig& run,
                                                   base::Config& config, settings::Remarks& remarks);

// What a model reads, as saves have it.
checkpoint::SavedSchema SavedSchemaOf(const data::Schema& schema);

}  // namespace regatta::worker
