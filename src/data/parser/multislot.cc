#include "data/parser/multislot.h"

#include <algorithm>
#include <vector>

#include "data/parser/sample_builder.h"

namespace regatta::data {
namespace {

struct DeclaredSlot {
  std::string name;
  FieldRef ref;
};

class MultiSlotParser final : public LineParser {
 public:
  MultiSlotParser(const Schema& schema, std::vector<DeclaredSlot> slots) : builder_(schema), slots_(std::move(slots)) {}

 private:
  absl::Status ParseLine(std::string_view line, SampleBlock& block) override {
    builder_.Begin();
    rest_ = line;
    for (const DeclaredSlot& slot : slots_) {
      const std::string_view count = Token();
      uint64_t n = 0;
      if (!ParseId(count.data(), count.data() + count.size(), &n))
        return absl::InvalidArgumentError(
            absl::StrCat("slot '", slot.name, "': expected a number of values, found ", Found(count)));
      for (uint64_t i = 0; i < n; ++i) {
        const std::string_view value = Token();
        if (value.empty())
          return absl::InvalidArgumentError(
              absl::StrCat("slot '", slot.name, "': expected ", n, " values, found ", i, " and the end of the line"));
        if (absl::Status status = builder_.Add(slot.ref, value); !status.ok())
          return base::Annotate(status, absl::StrCat("slot '", slot.name, "'"));
      }
    }
    if (const std::string_view more = Token(); !more.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("expected the end of the line after ", slots_.size(), " slots, found ", Quoted(more)));
    return builder_.Finish(block);
  }

  // The next token, empty at the end of the line.
  std::string_view Token() {
    const size_t begin = std::min(rest_.find_first_not_of(" \t"), rest_.size());
    const size_t end = std::min(rest_.find_first_of(" \t", begin), rest_.size());
    const std::string_view token = rest_.substr(begin, end - begin);
    rest_.remove_prefix(end);
    return token;
  }
  static std::string Found(std::string_view token) { return token.empty() ? "the end of the line" : Quoted(token); }

  SampleBuilder builder_;
  const std::vector<DeclaredSlot> slots_;
  std::string_view rest_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Parser>> MakeMultiSlotParser(const Schema& schema) {
  ASSIGN_OR_RETURN(FieldMap fields, FieldMap::Make(schema));
  std::vector<std::string> names(schema.labels.begin(), schema.labels.begin() + schema.label_dim());
  names.insert(names.end(), schema.sparse_slots.begin(), schema.sparse_slots.end());
  if (!schema.value_slot.empty()) names.push_back(schema.value_slot);
  if (schema.dense_dim > 0) names.push_back(schema.dense_slot);
  if (!schema.weight_slot.empty()) names.push_back(schema.weight_slot);
  if (!schema.user_slot.empty() && fields.Find(schema.user_slot).field == Field::kUser)
    names.push_back(schema.user_slot);
  std::vector<DeclaredSlot> slots;
  for (std::string& name : names) slots.push_back({name, fields.Find(name)});
  return std::unique_ptr<Parser>(new MultiSlotParser(schema, std::move(slots)));
}

}  // namespace regatta::data
