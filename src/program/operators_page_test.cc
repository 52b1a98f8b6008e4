// docs/operators.md is made of the schemas. REGATTA_WRITE_DOCS=1 writes it anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "program/schema_table.h"

namespace regatta::program {
namespace {

constexpr char kHead[] =
    "# Operators of programs\n\n"
    "After this page you know which operators a program may have, and what each takes and gives. Names, slots and "
    "defaults are\n"
    "those of PaddlePaddle Fluid 1.8; `backward` and `lr_schedule` are Regatta's own "
    "([adr/0016](adr/0016-a-backward-pass-is-one-operation.md),\n"
    "[adr/0017](adr/0017-a-schedule-is-one-operation.md)). `?` marks a slot that may be empty, `*` one that holds many "
    "variables.\n"
    "An attribute without a value must be given; of `a|b` the first is the default. A dtype is a number: 5 float32, 3 "
    "int64, 2\n"
    "int32, 6 float64, 0 bool.\n\n"
    "The page is made by `operators_page_test`; the rows are in `src/program/schema/`\n"
    "([adr/0018](adr/0018-operators-are-rows-of-text.md)).\n\n"
    "| operator | inputs | outputs | attributes |\n|---|---|---|---|\n";

std::string SlotsOnPage(const std::vector<SlotSchema>& slots) {
  return absl::StrJoin(slots, " ", [](std::string* out, const SlotSchema& slot) {
    absl::StrAppend(out, std::string(slot.name), slot.many ? "\\*" : "", slot.required ? "" : "?");
  });
}

std::string AttributesOnPage(const std::vector<AttributeSchema>& attributes) {
  return absl::StrJoin(attributes, ", ", [](std::string* out, const AttributeSchema& attribute) {
    absl::StrAppend(out, std::string(attribute.name), " ", AttributeTypeName(attribute.type));
    const auto append = [](std::string* text, std::string_view choice) { text->append(choice); };
    if (!attribute.choices.empty()) {
      absl::StrAppend(out, " ", absl::StrJoin(attribute.choices, "\\|", append));
    } else if (attribute.fallback) {
      absl::StrAppend(out, " ", AttributeText(*attribute.fallback));
    }
  });
}

TEST(OperatorsPage, IsMadeOfTheSchemas) {
  std::vector<const OpSchema*> schemas;
  for (const OpSchema& schema : AllSchemas()) schemas.push_back(&schema);
  std::ranges::sort(schemas, {}, &OpSchema::type);
  std::string page = kHead;
  for (const OpSchema* schema : schemas)
    absl::StrAppend(&page, "| ", std::string(schema->type), " | ", SlotsOnPage(schema->inputs), " | ",
                    SlotsOnPage(schema->outputs), " | ", AttributesOnPage(schema->attributes), " |\n");
  const char* source = std::getenv("REGATTA_SOURCE");
  if (source == nullptr) GTEST_SKIP() << "REGATTA_SOURCE is not set; ctest sets it";
  const std::string path = absl::StrCat(source, "/docs/operators.md");
  if (std::getenv("REGATTA_WRITE_DOCS") != nullptr) {
    ASSERT_TRUE(base::WriteFileAtomically(path, page).ok());
  }
  const absl::StatusOr<std::string> there = base::ReadFile(path);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(*there, page) << "run: REGATTA_WRITE_DOCS=1 ctest --preset release -R operators_page_test";
}

}  // namespace
}  // namespace regatta::program
