#include "program/schema_table.h"

#include <glog/logging.h>

#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_split.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/scalar.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

constexpr std::string_view kHints[] = {
    "is_cpu",          "force_cpu",         "name",
    "op_callstack",    "op_device",         "op_namescope",
    "op_role",         "op_role_var",       "use_cudnn",
    "use_mkldnn",      "use_quantizer",     "mkldnn_data_type",
    "with_quant_attr", "workspace_size_MB", "exhaustive_search",
};

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (const absl::string_view part : absl::StrSplit(base::View(text), at)) parts.push_back({part.data(), part.size()});
  return parts;
}

std::vector<SlotSchema> ReadSlots(std::string_view text) {
  std::vector<SlotSchema> slots;
  for (std::string_view name : Split(text, ' ')) {
    SlotSchema slot;
    for (; name.ends_with('?') || name.ends_with('*'); name.remove_suffix(1))
      (name.ends_with('?') ? slot.required : slot.many) ^= true;
    slot.name = name;
    slots.push_back(slot);
  }
  return slots;
}

// "[1,1]" → its elements.
std::vector<std::string_view> ListIn(std::string_view text) { return Split(text.substr(1, text.size() - 2), ','); }

Attribute ReadValue(std::string_view text, AttributeType type) {
  switch (type) {
    case AttributeType::kBool:
      return *base::ParseBool(text);
    case AttributeType::kInt:
      return *base::ParseInt(text);
    case AttributeType::kFloat:
      return *base::ParseDouble(text);
    case AttributeType::kString:
      return std::string(text);
    case AttributeType::kBools:
      return std::vector<bool>();
    case AttributeType::kInts: {
      std::vector<int64_t> list;
      for (const std::string_view each : ListIn(text)) list.push_back(*base::ParseInt(each));
      return list;
    }
    case AttributeType::kFloats: {
      std::vector<double> list;
      for (const std::string_view each : ListIn(text)) list.push_back(*base::ParseDouble(each));
      return list;
    }
    case AttributeType::kStrings:
      return std::vector<std::string>();
    case AttributeType::kBlock:
      return BlockIndex();
    case AttributeType::kBlocks:
      return std::vector<BlockIndex>();
  }
  return false;
}

AttributeSchema ReadAttribute(std::string_view text) {
  AttributeSchema attribute;
  const size_t colon = text.find(':');
  const size_t equals = text.find('=', colon);
  attribute.name = text.substr(0, colon);
  std::string_view type = text.substr(colon + 1, equals == text.npos ? equals : equals - colon - 1);
  attribute.wide = type == "long" || type == "longs";
  if (attribute.wide) type = type == "long" ? "int" : "ints";
  const std::optional<AttributeType> known = AttributeTypeNamed(type);
  CHECK(colon != text.npos && known) << "schema table: attribute '" << text << "'";
  attribute.type = *known;
  if (equals == text.npos) return attribute;
  std::string_view fallback = text.substr(equals + 1);
  if (fallback.find('|') != fallback.npos) {
    attribute.choices = Split(fallback, '|');
    fallback = attribute.choices.front();
  }
  attribute.fallback = ReadValue(fallback, *known);
  return attribute;
}

OpSchema ReadRow(const OpRow& row) {
  OpSchema schema;
  schema.type = row.type;
  schema.inputs = ReadSlots(row.inputs.text);
  schema.outputs = ReadSlots(row.outputs.text);
  for (const std::string_view text : Split(row.attributes.text, ' ')) schema.attributes.push_back(ReadAttribute(text));
  schema.infer = row.infer;
  return schema;
}

struct SchemaTable {
  std::vector<OpSchema> schemas;
  std::unordered_map<std::string_view, const OpSchema*> by_type;
};

SchemaTable ReadTables() {
  SchemaTable table;
  for (const auto rows : {ElementwiseRows(), ActivationRows(), MatrixRows(), ReduceRows(), TensorRows(), ReshapeRows(),
                          FillRows(), NnRows(), SequenceRows(), LossRows(), MetricRows(), GradientRows(),
                          OptimizerRows(), ControlRows(), IoRows(), DistributedRows()})
    for (const OpRow& row : rows) table.schemas.push_back(ReadRow(row));
  for (const OpSchema& schema : table.schemas)
    CHECK(table.by_type.emplace(schema.type, &schema).second) << "schema table: two rows for " << schema.type;
  return table;
}

const SchemaTable& Tables() {
  static const SchemaTable kTable = ReadTables();
  return kTable;
}

}  // namespace

const OpSchema* FindSchema(std::string_view type) {
  const auto found = Tables().by_type.find(type);
  return found == Tables().by_type.end() ? nullptr : found->second;
}

absl::StatusOr<const OpSchema*> SchemaOf(std::string_view type) {
  if (const OpSchema* schema = FindSchema(type)) return schema;
  std::vector<std::string> known;
  for (const OpSchema& schema : AllSchemas()) known.emplace_back(schema.type);
  const std::string nearest = base::NearestName(type, known);
  return absl::NotFoundError(absl::StrCat(
      "there is no operator '", base::Printable(type), "'",
      nearest.empty() ? " in this version (docs/operators.md)" : absl::StrCat("; did you mean '", nearest, "'?")));
}

std::span<const OpSchema> AllSchemas() { return Tables().schemas; }

bool IsHintAttribute(std::string_view name) { return std::ranges::find(kHints, name) != std::end(kHints); }

}  // namespace regatta::program
