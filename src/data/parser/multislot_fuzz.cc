#include "data/parser/any_bytes.h"
#include "data/parser/multislot.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  regatta::data::Schema schema;
  schema.sparse_slots = {"1", "2"};
  schema.dense_dim = 2;
  schema.value_slot = "v";
  for (const regatta::data::Schema& any : regatta::data::WithAnyLabels(schema))
    regatta::data::CheckAnyBytes(*regatta::data::MakeMultiSlotParser(any).value(), any, data, size);
  return 0;
}
