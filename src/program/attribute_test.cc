#include "program/attribute.h"

#include <gtest/gtest.h>

namespace regatta::program {
namespace {

TEST(Attribute, TextsShowValuesAndForgeNothing) {
  EXPECT_EQ(AttributeText(true), "true");
  EXPECT_EQ(AttributeText(int64_t{-3}), "-3");
  EXPECT_EQ(AttributeText(0.5), "0.5");
  EXPECT_EQ(AttributeText(std::string("a\"\n")), "\"a\\\"\\n\"");
  EXPECT_EQ(AttributeText(std::vector<int64_t>{1, 2}), "[1, 2]");
  EXPECT_EQ(AttributeText(std::vector<bool>{true, false}), "[true, false]");
  EXPECT_EQ(AttributeText(std::vector<std::string>{"a", "b"}), "[\"a\", \"b\"]");
  EXPECT_EQ(AttributeText(std::vector<BlockIndex>{{1}, {2}}), "[block 1, block 2]");
}

TEST(Attribute, AValueIsConvertedIfThatKeepsIt) {
  const auto convert = [](const Attribute& value, AttributeType type) {
    const std::optional<Attribute> converted = ConvertTo(value, type);
    return converted ? AttributeText(*converted) : "no";
  };
  EXPECT_EQ(convert(int64_t{2}, AttributeType::kFloat), "2");
  EXPECT_EQ(convert(2.0, AttributeType::kInt), "2");
  EXPECT_EQ(convert(2.5, AttributeType::kInt), "no");
  EXPECT_EQ(convert(1e300, AttributeType::kInt), "no");
  EXPECT_EQ(convert(int64_t{1}, AttributeType::kBool), "true");
  EXPECT_EQ(convert(int64_t{2}, AttributeType::kBool), "no");
  EXPECT_EQ(convert(true, AttributeType::kInt), "1");
  EXPECT_EQ(convert(int64_t{3}, AttributeType::kInts), "[3]");
  EXPECT_EQ(convert(std::vector<int64_t>{1}, AttributeType::kFloats), "[1]");
  EXPECT_EQ(convert(std::vector<int64_t>{}, AttributeType::kStrings), "[]");
  EXPECT_EQ(convert(std::vector<int64_t>{1}, AttributeType::kStrings), "no");
  EXPECT_EQ(convert(std::string("a"), AttributeType::kStrings), "[\"a\"]");
  EXPECT_EQ(convert(std::string("1"), AttributeType::kInt), "no");
  EXPECT_EQ(convert(BlockIndex{1}, AttributeType::kInt), "no");
}

TEST(Attribute, AnAbsentAttributeReadsAsNothing) {
  const Attributes attributes = {{"axis", int64_t{1}}};
  EXPECT_EQ(attributes.Int("axis"), 1);
  EXPECT_EQ(attributes.Int("dim"), 0);
  EXPECT_EQ(attributes.Float("axis"), 0);
  EXPECT_EQ(attributes.Strings("names"), std::vector<std::string>());
}

}  // namespace
}  // namespace regatta::program
