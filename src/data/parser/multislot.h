// MultiSlot, what a pipe_command prints: for each declared slot `n v1 … vn`, separated by spaces. The order is labels
// (where they are read), sparse slots, values (where declared), dense, weight, user (where it is no sparse slot).
#pragma once

#include <memory>

#include "data/parser/parser.h"

namespace regatta::data {

absl::StatusOr<std::unique_ptr<Parser>> MakeMultiSlotParser(const Schema& schema);

}  // namespace regatta::data
