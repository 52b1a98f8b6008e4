// The input formats by name: a new one is a parser and a row of kFormats.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/parser/criteo_tsv.h"
#include "data/parser/multislot.h"
#include "data/parser/parser.h"
#include "data/parser/slot_reader.h"
#include "data/parser/slot_text.h"

namespace regatta::data {

// For formats that take the schema's names as they are.
inline std::vector<std::string> DeclaredNames(const Schema& schema) { return schema.sparse_slots; }

struct FormatEntry {
  std::string_view name;
  std::string_view reader;  // the upstream reader that reads it
  absl::StatusOr<std::unique_ptr<Parser>> (*make)(const Schema&);
  // The declared sparse slots by the names that lines have for them.
  std::vector<std::string> (*names_in_lines)(const Schema&);
  // Slots that lines name and the schema does not declare; nullptr where lines name no slots.
  std::vector<std::string> (*other_slots)(std::string_view text, const Schema&);
};

// In the order in which detection prefers them.
inline constexpr FormatEntry kFormats[] = {
    {"slot_text", "criteo_reader", &MakeSlotTextParser, &DeclaredNames, &OtherSlotsOfSlotText},
    {"criteo_tsv", "benchmark_reader", &MakeCriteoTsvParser, &DeclaredNames, nullptr},
    {"slot_reader", "slot_reader", &MakeSlotReaderParser, &SlotReaderNames, &OtherSlotsOfSlotReader},
    {"multislot", "multislot", &MakeMultiSlotParser, &DeclaredNames, nullptr},
};

// By the format's or the reader's name; nullptr where there is none of it: then it is to be detected.
const FormatEntry* FindFormat(std::string_view name);

// The format that takes most of `text`, the first lines of a file (with kPadding readable bytes behind). Without labels
// the one that finds most ids, of those that take as many lines. An error where
// no format takes any, with what each of them says about the first line.
absl::StatusOr<const FormatEntry*> DetectFormat(std::string_view text, const Schema& schema);

}  // namespace regatta::data
