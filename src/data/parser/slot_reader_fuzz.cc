// Any bytes: no crash, every line is either a sample or a bad line, and the columns agree with each other.
#include <cstdlib>
#include <string>

#include "data/parser/slot_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta::data;  // NOLINT(build/namespaces)
  Schema schema;
  schema.sparse_slots = {"2", "3"};
  schema.dense_dim = 1;
  schema.weight_slot = "w";
  schema.user_slot = "u";
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.empty() || text.back() != '\n') text += '\n';
  const std::string padded = text + std::string(kPadding, '5');
  SampleBlock block;
  auto parser = MakeSlotReaderParser(schema).value();
  parser->Parse(std::string_view(padded).substr(0, text.size()), block);
  const size_t samples = static_cast<size_t>(block.size);
  if (samples + block.bad_lines != block.lines) std::abort();
  if (block.ends.size() != samples * schema.sparse_slots.size()) std::abort();
  if (samples > 0 && block.ends[block.ends.size() - 1] != block.keys.size()) std::abort();
  if (block.dense.size() != samples * static_cast<size_t>(schema.dense_dim)) std::abort();
  if (block.labels.size() != samples) std::abort();
  if (!schema.value_slot.empty() && block.values.size() != block.keys.size()) std::abort();
  if (block.weights.size() != (schema.weight_slot.empty() ? 0 : samples)) std::abort();
  if (block.users.size() != (schema.user_slot.empty() ? 0 : samples)) std::abort();
  return 0;
}
