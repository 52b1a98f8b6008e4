#include "data/parser/slot_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "data/parser/sample_builder.h"
#include "data/parser/undeclared_slots.h"

namespace regatta::data {
namespace {

class SlotReaderParser final : public LineParser {
 public:
  SlotReaderParser(const Schema& schema, FieldMap fields) : fields_(std::move(fields)), builder_(schema) {}

 private:
  absl::Status ParseLine(std::string_view line, SampleBlock& block) override {
    builder_.Begin();
    for (size_t at = 0; at < line.size();) {
      const size_t end = std::min(line.find_first_of(" \t", at), line.size());
      if (end > at) RETURN_IF_ERROR(AddToken(line.substr(at, end - at)));
      at = end + 1;
    }
    return builder_.Finish(block);
  }

  absl::Status AddToken(std::string_view token) {
    const size_t colon = token.find(':');
    if (colon == token.npos || colon == 0 || colon + 1 == token.size())
      return absl::InvalidArgumentError(absl::StrCat("expected feasign:slot, found ", Quoted(token)));
    const std::string_view name = token.substr(colon + 1);
    if (absl::Status status = builder_.Add(fields_.Find(name), token.substr(0, colon)); !status.ok())
      return base::Annotate(status, absl::StrCat("slot ", Quoted(name)));
    return absl::OkStatus();
  }

  const FieldMap fields_;
  SampleBuilder builder_;
};

void RaiseNumber(std::string& name, size_t by) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(name, &number)) name = absl::StrCat(number + by);
}

// The schema with the names that the file has for its slots.
Schema InFile(const Schema& schema) {
  Schema in_file = schema;
  const size_t labels = schema.labels.size();
  bool taken = false;
  in_file.real_labels.clear();
  for (size_t i = 0; i < labels; ++i) {
    const std::string name = absl::StrCat(i + 1);
    if (schema.IsReal(schema.labels[i])) in_file.real_labels.push_back(name);
    taken |= std::find(schema.sparse_slots.begin(), schema.sparse_slots.end(), name) != schema.sparse_slots.end();
    in_file.labels[i] = name;
  }
  if (taken) {
    for (std::string& name : in_file.sparse_slots) RaiseNumber(name, labels);
    RaiseNumber(in_file.user_slot, labels);
    RaiseNumber(in_file.weight_slot, labels);
  }
  return in_file;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Parser>> MakeSlotReaderParser(const Schema& schema) {
  const Schema in_file = InFile(schema);
  ASSIGN_OR_RETURN(FieldMap fields, FieldMap::Make(in_file));
  return std::unique_ptr<Parser>(new SlotReaderParser(in_file, std::move(fields)));
}

std::vector<std::string> SlotReaderNames(const Schema& schema) { return InFile(schema).sparse_slots; }

std::vector<std::string> OtherSlotsOfSlotReader(std::string_view text, const Schema& schema) {
  return UndeclaredSlots(text, InFile(schema), NameSide::kBehindColon);
}

}  // namespace regatta::data
