// Puts an operation into a block: slots and attributes are checked against the schema, defaults are filled in, and the
// outputs get their shapes.
// Thread-safety: as Block.
#pragma once

#include "program/block.h"

namespace regatta::program {

// Slots, attributes and variables against the schema of the operation's type; defaults filled in, values converted
// (1 → 1.0), hints dropped, empty slots left out. `variables` is where names are looked up.
// INVALID_ARGUMENT and NOT_FOUND begin with operation.Place(): "layers.fc (train.py:31): mul: …".
absl::Status CheckOperation(const Block& variables, Operation& operation);

// CheckOperation, then infers the outputs' shapes. After an error no operation was added.
absl::StatusOr<Operation*> AppendOperation(Block& block, Operation operation);
// Before operation `at`; `at` <= block.operations().size().
absl::StatusOr<Operation*> InsertOperation(Block& block, size_t at, Operation operation);

}  // namespace regatta::program
