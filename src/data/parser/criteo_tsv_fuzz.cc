#include "data/parser/any_bytes.h"
#include "data/parser/criteo_tsv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  regatta::data::Schema schema = regatta::data::CriteoSchema();
  for (const auto use : {regatta::data::LabelUse::kRead, regatta::data::LabelUse::kAbsent}) {
    schema.label_use = use;
    regatta::data::CheckAnyBytes(*regatta::data::MakeCriteoTsvParser(schema).value(), schema, data, size);
  }
  return 0;
}
