#include "program/schema_table.h"

#include <gtest/gtest.h>

namespace regatta::program {
namespace {

TEST(SchemaTable, ARowGivesSlotsAndAttributes) {
  const OpSchema* schema = FindSchema("fill_constant");
  ASSERT_NE(schema, nullptr);
  ASSERT_EQ(schema->inputs.size(), 3u);
  EXPECT_EQ(schema->inputs[2].name, "ShapeTensorList");
  EXPECT_TRUE(schema->inputs[2].many);
  EXPECT_FALSE(schema->inputs[2].required);
  EXPECT_TRUE(schema->Output("Out")->required);
  EXPECT_EQ(schema->FindAttribute("dtype")->fallback, Attribute(int64_t{5}));
  EXPECT_EQ(schema->FindAttribute("shape")->fallback, Attribute(std::vector<int64_t>()));
  EXPECT_EQ(schema->FindAttribute("str_value")->fallback, Attribute(std::string()));
  EXPECT_EQ(schema->FindAttribute("nothing"), nullptr);
}

TEST(SchemaTable, AnAttributeWithoutADefaultMustBeGiven) {
  EXPECT_EQ(FindSchema("momentum")->FindAttribute("mu")->fallback, std::nullopt);
}

TEST(SchemaTable, EveryRowCanBeInferred) {
  for (const OpSchema& schema : AllSchemas()) {
    EXPECT_NE(schema.infer, nullptr) << schema.type;
    for (const SlotSchema& slot : schema.inputs) EXPECT_FALSE(slot.name.empty()) << schema.type;
  }
}

}  // namespace
}  // namespace regatta::program
