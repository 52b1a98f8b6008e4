#include "data/parser/any_bytes.h"
#include "data/parser/criteo_tsv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  regatta::data::Schema schema;
  for (int i = 1; i <= 26; ++i) schema.sparse_slots.push_back(std::to_string(i));
  schema.dense_dim = 13;
  regatta::data::CheckAnyBytes(*regatta::data::MakeCriteoTsvParser(schema).value(), schema, data, size);
  return 0;
}
