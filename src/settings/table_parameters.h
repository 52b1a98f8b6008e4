// table_parameters.<table>: what a configuration changes of one table's rule and accessor.
// Thread-safety: belongs to one thread, as the Config.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/status.h"
#include "settings/key_table.h"
#include "settings/runner_options.h"
#include "table/table_config.h"

namespace regatta::settings {

struct TableRule {
  table::RuleConfig rule;
  std::optional<double> initial_range;  // rows start uniform in ± this; nothing = as the model declares
};

// The rule of `table`: `rule` with what table_parameters.<table> sets. Naming another rule starts from that rule's own
// defaults, but for the learning rate. Call it once for every table of the model: what no table asked for is unknown.
absl::StatusOr<TableRule> RuleFor(base::Config& config, std::string_view table, const table::RuleConfig& rule,
                                  Remarks& remarks);

std::span<const KeyDoc> TableKeys();

}  // namespace regatta::settings
