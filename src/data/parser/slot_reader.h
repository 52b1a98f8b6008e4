// slot_reader's text: `feasign:slot` tokens, separated by spaces; slot 1 is the label. Where the model itself declares
// a slot "1" beside its label, its numbered slots are the file's slots one higher.
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
