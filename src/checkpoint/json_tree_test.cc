#include "checkpoint/json_tree.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace regatta::checkpoint {
namespace {

std::string Nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(JsonTree, NestingIsBounded) {
  EXPECT_TRUE(ParseJson(Nested(32), {.bytes = 1 << 20}).ok());
  EXPECT_TRUE(ParseJson("[\"" + std::string(100, '[') + "\\\"[\"]", {.bytes = 1 << 20}).ok());
  for (const std::string& text : {Nested(33), Nested(200'000), std::string(200'000, '{'), std::string(200'000, '[')}) {
    const auto tree = ParseJson(text, {.bytes = 1 << 20});
    ASSERT_FALSE(tree.ok());
    EXPECT_TRUE(absl::StrContains(tree.status().message(), "nested too deeply at byte 32")) << tree.status();
  }
}

TEST(JsonTree, SizeIsBounded) {
  EXPECT_TRUE(ParseJson("[1234567]", {.bytes = 9}).ok());
  const auto tree = ParseJson("[12345678]", {.bytes = 9});
  EXPECT_TRUE(absl::StrContains(tree.status().message(), "10 bytes of JSON; the limit is 9")) << tree.status();
}

TEST(JsonTree, WhatIsNoJsonIsRefused) {
  for (const char* text : {"", "{", "nul", "{\"a\":1,}", "[1] 2", "\xff", "{\"a\":\"\xff\"}", "]", "1e999"})
    EXPECT_FALSE(ParseJson(text, {.bytes = 100}).ok()) << text;
}

// A quadratic parser would take minutes.
TEST(JsonTree, AnObjectMayHaveManyKeys) {
  constexpr int kKeys = 300'000;
  std::string text = "{";
  for (int i = 0; i < kKeys; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "\"key", i, "\":", i);
  text += "}";
  const auto tree = ParseJson(text, {.bytes = 16 << 20});
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->size(), static_cast<size_t>(kKeys));
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ((*tree)[absl::StrCat("key", i)], i);
}

}  // namespace
}  // namespace regatta::checkpoint
