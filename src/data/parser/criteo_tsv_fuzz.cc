#include "data/parser/any_bytes.h"
#include "data/parser/criteo_tsv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const regatta::data::Schema schema = regatta::data::CriteoSchema();
  regatta::data::CheckAnyBytes(*regatta::data::MakeCriteoTsvParser(schema).value(), schema, data, size);
  return 0;
}
