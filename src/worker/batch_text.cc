#include "worker/batch_text.h"

#include "absl/strings/str_format.h"

namespace regatta::worker {

std::string BatchText(const data::Batch& batch, const data::Schema& schema, int samples) {
  std::string text;
  for (int s = 0; s < std::min(samples, batch.size); ++s) {
    absl::StrAppendFormat(&text, "%s:%g", schema.label, batch.labels[s]);
    if (!batch.weights.empty()) absl::StrAppendFormat(&text, " %s:%.9g", schema.weight_slot, batch.weights[s]);
    for (int d = 0; d < batch.dense_dim; ++d)
      absl::StrAppendFormat(&text, " %s:%.9g", schema.dense_slot, batch.dense[int64_t{s} * batch.dense_dim + d]);
    for (int slot = 0; slot < batch.slots; ++slot) {
      const int64_t bag = int64_t{s} * batch.slots + slot;
      for (uint32_t p = batch.offsets[bag]; p < batch.offsets[bag + 1]; ++p) {
        absl::StrAppendFormat(&text, " %s:%d", schema.sparse_slots[slot], batch.keys[p]);
        if (!batch.values.empty()) absl::StrAppendFormat(&text, " %s:%.9g", schema.value_slot, batch.values[p]);
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace regatta::worker
