// Selected rows with equal rows added up, and as a tensor.
// Thread-safety: pure functions.
#pragma once

#include "exec/value.h"

namespace regatta::exec {

// Every row once, in ascending order.
SelectedRows MergeRows(const SelectedRows& rows);
// [height, …], zeros where there is no row.
torch::Tensor ToDense(const SelectedRows& rows);

}  // namespace regatta::exec
