// A program from the messages of program.proto, every field checked.
// Thread-safety: pure functions.
#pragma once

#include <memory>

#include "program/program.h"
#include "program/program.pb.h"

namespace regatta::program {

// INVALID_ARGUMENT says which field of which block, variable or operation cannot be.
absl::StatusOr<std::unique_ptr<Program>> ProgramOf(const ProgramMessage& message);

}  // namespace regatta::program
