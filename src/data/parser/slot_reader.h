// slot_reader's text: `feasign:slot` tokens, separated by spaces; slot 1 is the label, of a model with L labels slots
// 1 … L are. Where the model itself declares one of these slots beside its labels, its numbered slots are the file's
// slots L higher. That does not depend on whether labels are read.
#pragma once

#include <memory>

#include "data/parser/parser.h"

namespace regatta::data {

absl::StatusOr<std::unique_ptr<Parser>> MakeSlotReaderParser(const Schema& schema);
// The file's names of the declared sparse slots.
std::vector<std::string> SlotReaderNames(const Schema& schema);
// Slots in `text` that are neither the label nor declared, in the order in which they first occur.
std::vector<std::string> OtherSlotsOfSlotReader(std::string_view text, const Schema& schema);

}  // namespace regatta::data
