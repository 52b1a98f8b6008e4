// The accessors by name.
// Thread-safety: a pure function.
#pragma once

#include <memory>

#include "base/status.h"
#include "table/accessor/accessor.h"
#include "table/table_config.h"

namespace regatta::table {

absl::StatusOr<std::unique_ptr<Accessor>> MakeAccessor(const SparseTableConfig& config);

}  // namespace regatta::table
