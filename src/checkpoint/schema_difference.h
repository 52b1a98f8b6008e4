// Why a save does not fit a model: every field in which they differ, with the saved and the wanted value.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/model_tables.h"

namespace regatta::checkpoint {

// Empty where the save fits. What only changes future steps (learning rates, schedules, initial values, seeds) may
// differ: a warm start with another learning rate is legal.
std::vector<std::string> SchemaDifferences(const Manifest& saved, const ModelTables& wanted, LoadKind kind);

}  // namespace regatta::checkpoint
