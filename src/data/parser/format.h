// The input formats by name: a new one is a parser and a row of kFormats.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/parser/criteo_tsv.h"
#include "data/parser/multislot.h"
#include "data/parser/parser.h"
#include "data/parser/slot_reader.h"
#include "data/parser/slot_text.h"

namespace regatta::data {

struct FormatEntry {
  std::string_view name;
  std::string_view reader;  // the upstream reader that reads it
  absl::StatusOr<std::unique_ptr<Parser>> (*make)(const Schema&);
};

// In the order in which detection prefers them.
inline constexpr FormatEntry kFormats[] = {
    {"slot_text", "criteo_reader", &MakeSlotTextParser},
    {"criteo_tsv", "benchmark_reader", &MakeCriteoTsvParser},
    {"slot_reader", "slot_reader", &MakeSlotReaderParser},
    {"multislot", "multislot", &MakeMultiSlotParser},
};

// By the format's or the reader's name; nullptr where there is none of it: then it is to be detected.
const FormatEntry* FindFormat(std::string_view name);

// The format that takes most of `text`, the first lines of a file (with kPadding readable bytes behind). An error where
// no format takes any, with what each of them says about the first line.
absl::StatusOr<const FormatEntry*> DetectFormat(std::string_view text, const Schema& schema);

}  // namespace regatta::data
