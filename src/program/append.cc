#include "program/append.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "program/infer_context.h"
#include "program/schema_table.h"

namespace regatta::program {

namespace {

template <typename Entry>
std::string Suggest(const std::vector<Entry>& known, std::string_view name, std::string_view what) {
  std::vector<std::string> names;
  for (const Entry& entry : known) names.emplace_back(entry.name);
  const std::string nearest = name.size() > 2 ? base::NearestName(name, names) : "";
  if (!nearest.empty()) return absl::StrCat("; did you mean '", nearest, "'?");
  if (names.empty()) return absl::StrCat("; it has no ", base::View(what));
  return absl::StrCat("; its ", base::View(what), " are ", absl::StrJoin(names, ", "));
}

// One slot that is given, against its schema. `what` is "input" or "output".
absl::Status CheckSlot(const Block& block, const SlotSchema& schema, const Slot& slot, std::string_view what) {
  if (!schema.many && slot.variables.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(base::View(what), " ", slot.name, " takes one variable and got ",
                                                   slot.variables.size(), "; give it one"));
  }
  for (const std::string& name : slot.variables) {
    if (block.Find(name) != nullptr) continue;
    return absl::NotFoundError(absl::StrCat(base::View(what), " ", slot.name, " names the variable '",
                                            base::Printable(name), "', which block ", block.index(),
                                            " does not have; create it first, in the same program"));
  }
  return absl::OkStatus();
}

absl::Status CheckSlots(const Block& block, const std::vector<SlotSchema>& schemas, Slots& slots,
                        std::string_view what) {
  std::erase_if(slots, [](const Slot& slot) { return slot.variables.empty(); });
  for (const Slot& slot : slots) {
    const auto schema = std::ranges::find(schemas, slot.name, &SlotSchema::name);
    if (schema == schemas.end()) {
      return absl::InvalidArgumentError(absl::StrCat("there is no ", base::View(what), " '", base::Printable(slot.name),
                                                     "'",
                                                     Suggest(schemas, slot.name, absl::StrCat(base::View(what), "s"))));
    }
    if (std::ranges::count(slots, slot.name, &Slot::name) > 1)
      return absl::InvalidArgumentError(
          absl::StrCat(base::View(what), " ", slot.name, " is given twice; give it once"));
    RETURN_IF_ERROR(CheckSlot(block, *schema, slot, what));
  }
  for (const SlotSchema& schema : schemas) {
    if (!schema.required || std::ranges::find(slots, schema.name, &Slot::name) != slots.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(base::View(what), " ", base::View(schema.name), " is missing; give it a variable"));
  }
  return absl::OkStatus();
}

void SortSlots(const std::vector<SlotSchema>& schemas, Slots& slots) {
  const auto place = [&](const Slot& slot) { return std::ranges::find(schemas, slot.name, &SlotSchema::name); };
  std::ranges::sort(slots, {}, place);
}

// Whether all integers of the value have 32 bits.
bool IsNarrow(const Attribute& value) {
  const auto narrow = [](int64_t each) { return each == static_cast<int32_t>(each); };
  if (const auto* one = std::get_if<int64_t>(&value)) return narrow(*one);
  const auto* many = std::get_if<std::vector<int64_t>>(&value);
  return many == nullptr || std::ranges::all_of(*many, narrow);
}

absl::Status CheckValue(const AttributeSchema& schema, Attribute& value) {
  const std::optional<Attribute> converted = ConvertTo(value, schema.type);
  if (!converted) {
    return absl::InvalidArgumentError(absl::StrCat("attribute ", base::View(schema.name), " is ", AttributeText(value),
                                                   ", of type ", AttributeTypeName(TypeOf(value)), "; want ",
                                                   AttributeTypeName(schema.type)));
  }
  value = *converted;
  if (!schema.wide && !IsNarrow(value)) {
    return absl::InvalidArgumentError(absl::StrCat("attribute ", base::View(schema.name), " is ", AttributeText(value),
                                                   "; want integers of 32 bits"));
  }
  if (schema.choices.empty()) return absl::OkStatus();
  if (std::ranges::find(schema.choices, std::get<std::string>(value)) != schema.choices.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attribute ", base::View(schema.name), " is ", AttributeText(value), "; want one of ",
                   absl::StrJoin(schema.choices, ", ", [](auto* out, auto choice) { out->append(choice); })));
}

absl::Status CheckAttributes(const OpSchema& schema, Attributes& attributes) {
  Attributes checked;
  for (const auto& [name, given] : attributes) {
    const AttributeSchema* known = schema.FindAttribute(name);
    if (known == nullptr) {
      if (IsHintAttribute(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("there is no attribute '", base::Printable(name), "'",
                                                     Suggest(schema.attributes, name, "attributes")));
    }
    Attribute value = given;
    RETURN_IF_ERROR(CheckValue(*known, value));
    checked.Set(name, std::move(value));
  }
  for (const AttributeSchema& each : schema.attributes) {
    if (checked.Find(each.name) != nullptr) continue;
    if (!each.fallback) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute ", base::View(each.name), " is missing; give it a ", AttributeTypeName(each.type)));
    }
    checked.Set(std::string(each.name), *each.fallback);
  }
  attributes = std::move(checked);
  return absl::OkStatus();
}

absl::Status CheckAgainst(const OpSchema& schema, const Block& block, Operation& operation) {
  RETURN_IF_ERROR(CheckSlots(block, schema.inputs, operation.inputs, "input"));
  RETURN_IF_ERROR(CheckSlots(block, schema.outputs, operation.outputs, "output"));
  SortSlots(schema.inputs, operation.inputs);
  SortSlots(schema.outputs, operation.outputs);
  return CheckAttributes(schema, operation.attributes);
}

// Extents that can be: from -1 to kMostExtent.
absl::Status CheckExtents(const Block& block, const Slots& slots, std::string_view verb) {
  for (const Slot& slot : slots)
    for (const std::string& name : slot.variables) {
      const Shape& shape = block.Find(name)->shape;
      const auto possible = [](int64_t extent) { return extent >= kUnknownExtent && extent <= kMostExtent; };
      if (std::ranges::all_of(shape, possible)) continue;
      return absl::InvalidArgumentError(absl::StrCat(slot.name, " ", base::View(verb), " ", ShapeText(shape),
                                                     "; want extents from 0 to ", kMostExtent, ", or -1"));
    }
  return absl::OkStatus();
}

absl::Status InferOutputs(Block& block, const Operation& operation) {
  RETURN_IF_ERROR(CheckExtents(block, operation.inputs, "is"));
  InferContext context(block, operation);
  RETURN_IF_ERROR(FindSchema(operation.type)->infer(context));
  return CheckExtents(block, operation.outputs, "would be");
}

}  // namespace

absl::Status CheckOperation(const Block& variables, Operation& operation) {
  const absl::StatusOr<const OpSchema*> schema = SchemaOf(operation.type);
  if (!schema.ok()) {
    const std::string where = operation.site.Text();
    return where.empty() ? schema.status() : base::Annotate(schema.status(), where);
  }
  return base::Annotate(CheckAgainst(**schema, variables, operation), operation.Place());
}

absl::StatusOr<Operation*> AppendOperation(Block& block, Operation operation) {
  return InsertOperation(block, block.operations().size(), std::move(operation));
}

absl::StatusOr<Operation*> InsertOperation(Block& block, size_t at, Operation operation) {
  RETURN_IF_ERROR(CheckOperation(block, operation));
  RETURN_IF_ERROR(base::Annotate(InferOutputs(block, operation), operation.Place()));
  return &block.InsertOperation(at, std::move(operation));
}

}  // namespace regatta::program
