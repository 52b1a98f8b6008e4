// What must hold of a parser whatever bytes it is given; for fuzzing.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "data/batch.h"
#include "data/parser/parser.h"

namespace regatta::data {

// Aborts unless every line is either a sample or a bad line and the columns agree with each other.
inline void CheckAnyBytes(Parser& parser, const Schema& schema, const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.empty() || text.back() != '\n') text += '\n';
  const std::string padded = text + std::string(kPadding, '5');
  SampleBlock block;
  parser.Parse(std::string_view(padded).substr(0, text.size()), block);
  const size_t samples = static_cast<size_t>(block.size);
  const bool agree =
      samples + block.bad_lines == block.lines && block.ends.size() == samples * schema.sparse_slots.size() &&
      (samples == 0 || block.ends[block.ends.size() - 1] == block.keys.size()) &&
      block.dense.size() == samples * static_cast<size_t>(schema.dense_dim) && block.labels.size() == samples &&
      (schema.value_slot.empty() || block.values.size() == block.keys.size()) &&
      block.weights.size() == (schema.weight_slot.empty() ? 0 : samples) &&
      block.users.size() == (schema.user_slot.empty() ? 0 : samples);
  if (!agree) std::abort();
}

}  // namespace regatta::data
