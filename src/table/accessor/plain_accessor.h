// The plain accessor: a row is w (dim) and the rule's state; a pull gives w, a push brings its gradient. A row is
// created with its initial value at its first push.
#pragma once

#include <memory>

#include "base/status.h"
#include "table/accessor/accessor.h"

namespace regatta::table {

absl::StatusOr<std::unique_ptr<Accessor>> MakePlainAccessor(const SparseTableConfig& config);

}  // namespace regatta::table
