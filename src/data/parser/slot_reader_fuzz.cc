#include "data/parser/any_bytes.h"
#include "data/parser/slot_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  regatta::data::Schema schema;
  schema.sparse_slots = {"2", "3"};
  schema.dense_dim = 1;
  schema.weight_slot = "w";
  schema.user_slot = "u";
  for (const regatta::data::Schema& any : regatta::data::WithAnyLabels(schema))
    regatta::data::CheckAnyBytes(*regatta::data::MakeSlotReaderParser(any).value(), any, data, size);
  return 0;
}
