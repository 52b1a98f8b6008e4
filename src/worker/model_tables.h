// The tables of a model: its declarations turned into table configurations.
// Thread-safety: pure functions.
#pragma once

#include "base/config.h"
#include "base/status.h"
#include "model/spec.h"
#include "runner/optimizer.h"
#include "runner/run_config.h"
#include "table/checkpoint/model_identity.h"
#include "table/table_config.h"

namespace regatta::worker {

// Sparse tables are in order of ModelSpec::embeddings. INVALID_ARGUMENT where two embeddings name one table.
absl::StatusOr<table::ModelConfig> TablesOf(const model::ModelSpec& spec, const runner::OptimizerOptions& optimizer,
                                            uint64_t seed);

// The same with what table_parameters says of each table.
absl::StatusOr<table::ModelConfig> ConfigureTables(const model::ModelSpec& spec, const runner::RunConfig& run,
                                                   base::Config& config, runner::Remarks& remarks);

// What a model reads, as saves have it.
table::SavedSchema SavedSchemaOf(const data::Schema& schema);

}  // namespace regatta::worker
