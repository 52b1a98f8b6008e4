#include "data/parser/criteo_tsv.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/hash.h"
#include "data/parser/sample_builder.h"

namespace regatta::data {
namespace {

constexpr int kFields = 1 + kCriteoDense + kCriteoSparse;

bool IsHex(std::string_view text) {
  for (char c : text)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return false;
  return !text.empty() && text.size() <= 16;
}

class CriteoTsvParser final : public LineParser {
 public:
  CriteoTsvParser(const Schema& schema, std::vector<int> slot_of_column)
      : builder_(schema),
        slot_of_column_(std::move(slot_of_column)),
        want_dense_(schema.dense_dim > 0),
        want_label_(schema.label_dim() > 0) {}

 private:
  absl::Status ParseLine(std::string_view line, SampleBlock& block) override;
  absl::Status AddField(int field, std::string_view text);

  SampleBuilder builder_;
  const std::vector<int> slot_of_column_;  // -1 = the model does not read it
  const bool want_dense_;
  const bool want_label_;
};

absl::Status CriteoTsvParser::AddField(int field, std::string_view text) {
  if (field == 0) return want_label_ ? base::Annotate(builder_.Add({Field::kLabel}, text), "label") : absl::OkStatus();
  if (field <= kCriteoDense) {
    const int i = field - 1;
    float raw = 0;
    if (!text.empty() && !ParseDecimal(text.data(), text.data() + text.size(), &raw))
      return absl::InvalidArgumentError(absl::StrCat("I", field, ": expected a number, found ", Quoted(text)));
    if (want_dense_)
      builder_.AddDense(text.empty() ? 0.0f : static_cast<float>((raw - kCriteoMin[i]) / kCriteoDiff[i]));
    return absl::OkStatus();
  }
  const int column = field - 1 - kCriteoDense;
  if (text.empty()) return absl::OkStatus();
  if (!IsHex(text))
    return absl::InvalidArgumentError(absl::StrCat("C", column + 1, ": expected a hex string, found ", Quoted(text)));
  const int slot = slot_of_column_[static_cast<size_t>(column)];
  if (slot >= 0) builder_.AddKey(static_cast<uint32_t>(slot), base::HashBytes(text, static_cast<uint64_t>(column + 1)));
  return absl::OkStatus();
}

absl::Status CriteoTsvParser::ParseLine(std::string_view line, SampleBlock& block) {
  builder_.Begin();
  const bool lacks_label = !want_label_ && std::count(line.begin(), line.end(), '\t') == kFields - 2;
  int field = lacks_label ? 1 : 0;
  for (size_t at = 0;; ++field) {
    const size_t tab = line.find('\t', at);
    const std::string_view text = line.substr(at, tab == line.npos ? line.npos : tab - at);
    if (field < kFields) RETURN_IF_ERROR(AddField(field, text));
    if (tab == line.npos) break;
    at = tab + 1;
  }
  if (field + 1 != kFields)
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", kFields, " fields separated by tabs, found ", field + 1));
  return builder_.Finish(block);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Parser>> MakeCriteoTsvParser(const Schema& schema) {
  if (schema.dense_dim != 0 && schema.dense_dim != kCriteoDense)
    return absl::InvalidArgumentError(absl::StrCat("raw Criteo has 13 dense features, the model reads ",
                                                   schema.dense_dim, ": set hyper_parameters.dense_input_dim to 13"));
  if (!schema.weight_slot.empty() || !schema.value_slot.empty())
    return absl::InvalidArgumentError("raw Criteo has no weights: slot text has");
  if (schema.labels.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("raw Criteo has one label, the model reads ", schema.labels.size(),
                                                   ": slot text has any number of them"));
  RETURN_IF_ERROR(FieldMap::Make(schema).status());
  std::vector<int> slot_of_column(kCriteoSparse, -1);
  for (size_t slot = 0; slot < schema.sparse_slots.size(); ++slot) {
    int column = 0;
    if (!absl::SimpleAtoi(schema.sparse_slots[slot], &column) || column < 1 || column > kCriteoSparse)
      return absl::InvalidArgumentError(
          absl::StrCat("raw Criteo has the sparse slots 1 to 26, the model reads '", schema.sparse_slots[slot], "'"));
    slot_of_column[static_cast<size_t>(column - 1)] = static_cast<int>(slot);
  }
  return std::unique_ptr<Parser>(new CriteoTsvParser(schema, std::move(slot_of_column)));
}

}  // namespace regatta::data
