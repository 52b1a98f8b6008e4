// Whether a value fits the variable that it is fed to.
// Thread-safety: pure functions.
#pragma once

#include "exec/prepared_program.h"

namespace regatta::exec {

// INVALID_ARGUMENT names the variable, both types and shapes, and the operation that reads it. A LoD may come with a
// variable that declares none; the offsets must fit the rows.
absl::Status CheckFeed(const PreparedVariable& variable, const Value& value);

}  // namespace regatta::exec
