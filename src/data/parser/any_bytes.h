// What must hold of a parser whatever bytes it is given; for fuzzing.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch.h"
#include "data/parser/parser.h"

namespace regatta::data {

// Whether a line holds nothing, or spaces only; its ending may be there.
inline bool HoldsNothing(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.find_first_not_of(' ') == line.npos;
}

inline size_t CountBlankLines(std::string_view text) {
  size_t blank = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    blank += HoldsNothing(text.substr(at, text.find('\n', at) - at)) ? 1 : 0;
  return blank;
}

// The schema as it is, with two labels of which one is any number, and without labels.
inline std::vector<Schema> WithAnyLabels(const Schema& schema) {
  Schema two = schema, none = schema;
  two.labels = {"click", "price"};
  two.real_labels = {"price"};
  none.label_use = LabelUse::kAbsent;
  return {schema, two, none};
}

// Aborts unless every line is a sample, a bad line or blank and the columns agree with each other.
inline void CheckAnyBytes(Parser& parser, const Schema& schema, const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.empty() || text.back() != '\n') text += '\n';
  const std::string padded = text + std::string(kPadding, '5');
  SampleBlock block;
  parser.Parse(std::string_view(padded).substr(0, text.size()), block);
  const size_t samples = static_cast<size_t>(block.size);
  const bool agree = samples + block.bad_lines + CountBlankLines(text) == block.lines &&
                     block.ends.size() == samples * schema.sparse_slots.size() &&
                     (samples == 0 || block.ends[block.ends.size() - 1] == block.keys.size()) &&
                     block.dense.size() == samples * static_cast<size_t>(schema.dense_dim) &&
                     block.labels.size() == samples * static_cast<size_t>(schema.label_dim()) &&
                     (schema.value_slot.empty() || block.values.size() == block.keys.size()) &&
                     block.weights.size() == (schema.weight_slot.empty() ? 0 : samples) &&
                     block.users.size() == (schema.user_slot.empty() ? 0 : samples);
  if (!agree) std::abort();
}

}  // namespace regatta::data
