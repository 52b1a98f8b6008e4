#include "worker/batch_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "data/slot_key.h"

namespace regatta::worker {
namespace {

// "click:1 price:2.5"
void AppendLabels(const data::Batch& batch, const data::Schema& schema, int sample, std::string& text) {
  for (int i = 0; i < batch.label_dim; ++i) {
    const std::string& name = schema.labels[static_cast<size_t>(i)];
    const float label =
        batch.labels[static_cast<size_t>(sample) * static_cast<size_t>(batch.label_dim) + static_cast<size_t>(i)];
    absl::StrAppend(&text, i == 0 ? "" : " ", name, ":",
                    schema.IsReal(name) ? absl::StrFormat("%.9g", label) : absl::StrFormat("%g", label));
  }
}

}  // namespace

std::string HugeInput(const data::Batch& batch, const data::Schema& schema) {
  constexpr float kHuge = 1e9;
  const auto magnitude = [](float a, float b) { return std::abs(a) < std::abs(b); };
  if (const auto dense = std::max_element(batch.dense.begin(), batch.dense.end(), magnitude);
      dense != batch.dense.end() && std::abs(*dense) >= kHuge) {
    const int64_t at = dense - batch.dense.begin();
    return absl::StrFormat("Sample %d has %g in %s, value %d of %d", at / batch.dense_dim, *dense, schema.dense_slot,
                           at % batch.dense_dim + 1, batch.dense_dim);
  }
  if (const auto value = std::max_element(batch.values.begin(), batch.values.end(), magnitude);
      value != batch.values.end() && std::abs(*value) >= kHuge)
    return absl::StrFormat("A sample has %g in %s", *value, schema.value_slot);
  if (const auto weight = std::max_element(batch.weights.begin(), batch.weights.end(), magnitude);
      weight != batch.weights.end() && *weight >= kHuge)
    return absl::StrFormat("Sample %d has the weight %g in %s", weight - batch.weights.begin(), *weight,
                           schema.weight_slot);
  if (const auto label = std::max_element(batch.labels.begin(), batch.labels.end(), magnitude);
      label != batch.labels.end() && std::abs(*label) >= kHuge) {
    const auto at = static_cast<size_t>(label - batch.labels.begin()), dim = static_cast<size_t>(batch.label_dim);
    return absl::StrFormat("Sample %d has the label %g in %s", at / dim, *label, schema.labels[at % dim]);
  }
  return "";
}

std::string BatchText(const data::Batch& batch, const data::Schema& schema, int samples) {
  std::string text;
  for (int s = 0; s < std::min(samples, batch.size); ++s) {
    AppendLabels(batch, schema, s, text);
    if (!batch.weights.empty()) absl::StrAppendFormat(&text, " %s:%.9g", schema.weight_slot, batch.weights[s]);
    for (int d = 0; d < batch.dense_dim; ++d)
      absl::StrAppendFormat(&text, " %s:%.9g", schema.dense_slot, batch.dense[int64_t{s} * batch.dense_dim + d]);
    for (int slot = 0; slot < batch.slots; ++slot) {
      const int64_t bag = int64_t{s} * batch.slots + slot;
      for (uint32_t p = batch.offsets[bag]; p < batch.offsets[bag + 1]; ++p) {
        const std::string& name = schema.sparse_slots[slot];
        const bool shared = schema.id_space == base::IdSpace::kShared;
        absl::StrAppendFormat(&text, " %s:%d", name,
                              shared ? batch.keys[p] : data::IdOfSlotKey(data::SlotSalt(name), batch.keys[p]));
        if (!batch.values.empty()) absl::StrAppendFormat(&text, " %s:%.9g", schema.value_slot, batch.values[p]);
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace regatta::worker
