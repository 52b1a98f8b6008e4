// Slot text: `click:0 dense_feature:0.05 … 1:737395 … 26:306163`, any slots in any order, repeated ones multi-valued.
// Most files repeat one sequence of slots line after line. So the last good line's sequence is kept as a plan, and a
// line that follows it is parsed without looking anything up; any other line takes the plain path, which alone
// decides what is legal.
#pragma once

#include <memory>

#include "data/parser/parser.h"

namespace regatta::data {

absl::StatusOr<std::unique_ptr<Parser>> MakeSlotTextParser(const Schema& schema);
// Names of slots in `text` that the schema does not declare, in the order in which they first occur.
std::vector<std::string> OtherSlotsOfSlotText(std::string_view text, const Schema& schema);

}  // namespace regatta::data
