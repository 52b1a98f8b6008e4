// hyper_parameters.optimizer: the rules of the sparse and dense tables, and the learning-rate schedule.
// Thread-safety: plain values.
#pragma once

#include <span>

#include "base/config.h"
#include "base/status.h"
#include "settings/key_table.h"
#include "settings/runner_options.h"
#include "table/table_config.h"

namespace regatta::settings {

struct OptimizerOptions {
  table::RuleConfig sparse;  // table_parameters may override it for a table
  table::RuleConfig dense;
  table::ScheduleConfig schedule;
  double clip_by_norm = 0;  // bound on the dense gradient's global norm; 0 = none
};

absl::StatusOr<OptimizerOptions> ParseOptimizer(base::Config& config, Remarks& remarks);

std::span<const KeyDoc> OptimizerKeys();

}  // namespace regatta::settings
