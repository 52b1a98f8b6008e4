#include "data/parser/slot_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "data/parser/slot_plan.h"

namespace regatta::data {
namespace {

Schema TextSchema() {
  Schema schema;
  schema.sparse_slots = {"1", "2"};
  schema.dense_dim = 1;
  schema.dense_slot = "d";
  return schema;
}

SampleBlock ParseText(const Schema& schema, const std::string& text) {
  auto parser = MakeSlotTextParser(schema);
  EXPECT_TRUE(parser.ok()) << parser.status();
  const std::string padded = text + std::string(kPadding, '7');
  SampleBlock block;
  (*parser)->Parse(std::string_view(padded).substr(0, text.size()), block);
  return block;
}

std::vector<uint64_t> TextBag(const SampleBlock& block, int sample, int slot) {
  const size_t bag = static_cast<size_t>(sample * block.slots + slot);
  return {block.keys.data() + block.BagBegin(bag), block.keys.data() + block.ends[bag]};
}

using Ids = std::vector<uint64_t>;

TEST(SlotText, ReadsTheCriteoSampleAsAPlainReaderDoes) {
  std::ifstream file(REGATTA_TEST_DATA "/criteo_slots_80.txt");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const SampleBlock block = ParseText(CriteoSchema(), text);
  ASSERT_EQ(block.size, 80);
  EXPECT_EQ(block.lines, 80u);
  EXPECT_EQ(block.bad_lines, 0u);
  std::istringstream lines(text);
  std::string line;
  for (int sample = 0; std::getline(lines, line); ++sample) {
    std::istringstream tokens(line);
    std::string token;
    std::map<std::string, std::vector<std::string>> slots;
    while (tokens >> token) slots[token.substr(0, token.find(':'))].push_back(token.substr(token.find(':') + 1));
    EXPECT_EQ(block.labels[static_cast<size_t>(sample)], std::stof(slots["click"].at(0)));
    for (int i = 0; i < 13; ++i)
      EXPECT_EQ(block.dense[static_cast<size_t>(sample * 13 + i)],
                static_cast<float>(std::stod(slots["dense_feature"].at(static_cast<size_t>(i)))));
    for (int slot = 0; slot < 26; ++slot) {
      Ids want;
      for (const std::string& id : slots[std::to_string(slot + 1)]) want.push_back(std::stoull(id));
      EXPECT_EQ(TextBag(block, sample, slot), want);
    }
  }
}

TEST(SlotText, TakesSlotsInAnyOrderRepeatedAndMissing) {
  const SampleBlock block = ParseText(TextSchema(),
                                      "click:1 d:0.5 1:10 2:20\n"
                                      "2:21 2:22 d:-1.25 1:11 click:0\n"
                                      "click:0 d:3\n"
                                      "2:21 2:23 d:-1.5 1:12 click:1\n"
                                      "click:1 other:x:y d:1e-3 2:7 unknown:-5\n");
  ASSERT_EQ(block.size, 5);
  EXPECT_EQ(TextBag(block, 0, 0), Ids({10}));
  EXPECT_EQ(TextBag(block, 0, 1), Ids({20}));
  EXPECT_EQ(TextBag(block, 1, 0), Ids({11}));
  EXPECT_EQ(TextBag(block, 1, 1), Ids({21, 22}));
  EXPECT_EQ(TextBag(block, 2, 0), Ids({}));
  EXPECT_EQ(TextBag(block, 2, 1), Ids({}));
  EXPECT_EQ(TextBag(block, 3, 0), Ids({12}));
  EXPECT_EQ(TextBag(block, 3, 1), Ids({21, 23}));
  EXPECT_EQ(TextBag(block, 4, 1), Ids({7}));
  EXPECT_EQ(std::vector<float>(block.dense.begin(), block.dense.end()),
            std::vector<float>({0.5f, -1.25f, 3.0f, -1.5f, 0.001f}));
  EXPECT_EQ(std::vector<float>(block.labels.begin(), block.labels.end()), std::vector<float>({1, 0, 0, 1, 1}));
}

TEST(SlotText, TakesEveryIdUpTo64Bits) {
  const SampleBlock block = ParseText(TextSchema(),
                                      "click:0 d:0 1:0 2:18446744073709551615\n"
                                      "click:0 d:0 1:1 2:2\n"
                                      "click:0 d:0 1:12345678 2:1234567890123456\n"
                                      "click:0 d:0 1:0 2:18446744073709551615\n"
                                      "click:0 d:0 1:00000000000000000000000042 2:9999999999999999999\n");
  ASSERT_EQ(block.size, 5) << (block.bad.empty() ? "" : block.bad[0].reason);
  EXPECT_EQ(TextBag(block, 0, 1), Ids({UINT64_MAX}));
  EXPECT_EQ(TextBag(block, 0, 0), Ids({0}));
  EXPECT_EQ(TextBag(block, 2, 0), Ids({12345678}));
  EXPECT_EQ(TextBag(block, 2, 1), Ids({1234567890123456ull}));
  EXPECT_EQ(TextBag(block, 3, 1), Ids({UINT64_MAX}));
  EXPECT_EQ(TextBag(block, 4, 0), Ids({42}));
  EXPECT_EQ(TextBag(block, 4, 1), Ids({9999999999999999999ull}));
}

TEST(SlotText, TellsWhatIsWrongWithALineAndSkipsIt) {
  const std::string good = "click:1 d:0.5 1:10 2:20\n";
  struct Case {
    std::string line, reason;
  };
  const Case cases[] = {
      {"click:0 d:0.5 1:-3 2:20", "slot '1': expected an id from 0 to 2^64-1, found '-3'"},
      {"click:0 d:0.5 1:18446744073709551616 2:20", "found '18446744073709551616'"},
      {"click:0 d:0.5 1:1x 2:20", "found '1x'"},
      {"click:0 d:0.5 1:1.0 2:20", "found '1.0'"},
      {"click:0 d:0.5 1: 2:20", "expected slot:value, found '1:'"},
      {"click:0 d:0.5 :1", "expected slot:value, found ':1'"},
      {"click:0 d:0.5 nothing", "expected slot:value, found 'nothing'"},
      {"click:0 d:nan 1:1", "slot 'd': expected a finite number, found 'nan'"},
      {"click:0 d:inf 1:1", "found 'inf'"},
      {"click:0 d:-inf 1:1", "found '-inf'"},
      {"click:0 d:1e39 1:1", "found '1e39'"},
      {"click:0 d:1e999 1:1", "found '1e999'"},
      {"click:0 d:0.5.1 1:1", "found '0.5.1'"},
      {"click:0 d:+-1 1:1", "found '+-1'"},
      {"click:nan d:1", "slot 'click': expected a finite number"},
      {"click:7 d:0.5 1:10 2:20", "slot 'click': expected a label from 0 to 1, found '7'"},
      {"click:-1 d:0.5 1:10 2:20", "slot 'click': expected a label from 0 to 1, found '-1'"},
      {"click:1.5 1:10 2:20 d:0.5", "found '1.5'"},
      {"click:0 click:1 d:1", "expected 1 value of the label slot 'click', found 2"},
      {"d:1 1:1", "expected 1 value of the label slot 'click', found 0"},
      {"click:0 1:1", "expected 1 value of the dense slot 'd', found 0"},
      {"click:0 d:1 d:2 1:1", "expected 1 value of the dense slot 'd', found 2"},
      {"\t", "expected 1 value of the label slot 'click', found 0"},
      {std::string("click:0 d:0.5 1:1\0 2:2", 22), "found '1\\x00'"},
      {"\x01\xff\xfe binary \x80 garbage", "expected slot:value"},
      {"click:0 d:0.5 1:10 2:20 trailing", "found 'trailing'"},
  };
  for (const Case& bad : cases) {
    const SampleBlock block = ParseText(TextSchema(), good + bad.line + "\n" + good);
    EXPECT_EQ(block.size, 2) << bad.line;
    EXPECT_EQ(block.lines, 3u);
    EXPECT_EQ(block.keys.size(), 4u) << "a bad line must leave no key: " << bad.line;
    EXPECT_EQ(block.dense.size(), 2u);
    ASSERT_EQ(block.bad.size(), 1u) << bad.line;
    EXPECT_EQ(block.bad[0].line, 1u);
    EXPECT_NE(block.bad[0].reason.find(bad.reason), std::string::npos)
        << bad.line << "\n is refused with: " << block.bad[0].reason;
  }
}

TEST(SlotText, TakesOddSpacingAndLineEndings) {
  const SampleBlock block = ParseText(TextSchema(),
                                      "click:1 d:0.5 1:10 2:20\r\nclick:1 d:0.5 1:11 2:21\r\n"
                                      "  click:1\td:0.5   1:12 2:22  \nclick:1 d:0.5 1:13 2:23 \n");
  ASSERT_EQ(block.size, 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(TextBag(block, i, 0), Ids({10u + static_cast<uint64_t>(i)}));
    EXPECT_EQ(TextBag(block, i, 1), Ids({20u + static_cast<uint64_t>(i)}));
  }
}

TEST(SlotText, ReadsValuesOfKeys) {
  Schema schema;
  schema.labels = {"label"};
  schema.sparse_slots = {"feat_idx"};
  schema.value_slot = "feat_value";
  const SampleBlock block = ParseText(schema,
                                      "label:1 feat_idx:3 feat_idx:9 feat_value:0.5 feat_value:2\n"
                                      "label:0 feat_value:0.25 feat_idx:4 feat_idx:8 feat_value:1\n"
                                      "label:0 feat_idx:4 feat_value:0.25 feat_value:1\n");
  ASSERT_EQ(block.size, 2);
  EXPECT_EQ(std::vector<float>(block.values.begin(), block.values.end()), std::vector<float>({0.5, 2, 0.25, 1}));
  ASSERT_EQ(block.bad.size(), 1u);
  EXPECT_EQ(block.bad[0].reason, "expected a value of the slot 'feat_value' for each of 1 ids, found 2");
}

TEST(SlotText, KeepsValuesWithTheirKeysWhenSlotsAreOutOfOrder) {
  Schema schema;
  schema.sparse_slots = {"1", "2"};
  schema.value_slot = "v";
  const std::string line = "click:1 2:20 1:10 2:21 v:0.2 v:0.1 v:0.3\n";
  const SampleBlock block = ParseText(schema, line + line);
  ASSERT_EQ(block.size, 2);
  EXPECT_EQ(Ids(block.keys.begin(), block.keys.end()), Ids({10, 20, 21, 10, 20, 21}));
  EXPECT_EQ(std::vector<float>(block.values.begin(), block.values.end()),
            std::vector<float>({0.1f, 0.2f, 0.3f, 0.1f, 0.2f, 0.3f}));
}

TEST(SlotText, ReadsWeightsAndUsers) {
  Schema schema = TextSchema();
  schema.weight_slot = "w";
  schema.user_slot = "u";
  SampleBlock block =
      ParseText(schema, "click:1 d:1 w:0.5 u:77 1:5\nclick:1 d:1 w:2 u:78 1:6\nclick:1 d:1 w:-1 u:3 1:6\n");
  EXPECT_EQ(block.size, 2);
  EXPECT_EQ(std::vector<float>(block.weights.begin(), block.weights.end()), std::vector<float>({0.5, 2}));
  EXPECT_EQ(Ids(block.users.begin(), block.users.end()), Ids({77, 78}));
  EXPECT_EQ(block.bad_lines, 1u);
  schema.weight_slot = "";
  schema.user_slot = "2";
  block = ParseText(schema, "click:1 d:1 2:9 1:5\nclick:1 d:1 2:8 1:5\nclick:1 d:1 1:5\n");
  EXPECT_EQ(Ids(block.users.begin(), block.users.end()), Ids({9, 8, 0}));
}

TEST(SlotText, DecimalsAreTheNearestDoubleAsFloat) {
  const char* const texts[] = {"0.1",
                               "0.00497512437811",
                               "1.886",
                               "12345678.5",
                               "0.9007199254740993",
                               "9.999999999",
                               "1.17549435e-38",
                               "-0.0",
                               "123456789.123456",
                               "0.3333333333333333333",
                               "16777217",
                               "8.5e-46",
                               ".5",
                               "5.",
                               "3.14159265358979323",
                               "+2.5",
                               "9.99999999999999",
                               "0.000000001",
                               "99999999.9999999",
                               "1.00000005960464477"};
  std::string text;
  for (const char* number : texts) text += std::string("click:0 d:") + number + " 1:1\n";
  const SampleBlock block = ParseText(TextSchema(), text);
  ASSERT_EQ(block.size, static_cast<int>(std::size(texts))) << (block.bad.empty() ? "" : block.bad[0].reason);
  for (size_t i = 0; i < std::size(texts); ++i)
    EXPECT_EQ(block.dense[i], static_cast<float>(std::strtod(texts[i], nullptr))) << texts[i];
}

TEST(SlotPlan, PortableCodeGivesTheSameBits) {
  const FieldMap fields = FieldMap::Make(TextSchema()).value();
  const std::string planned = "click:1 d:0.00497512437811 1:1234567 2:99999999999";
  const std::string text = planned + "\nclick:0 d:-7.25 1:1 2:1234567890123456\n" + std::string(kPadding, '9');
  for (const SlotPlan::Target target : {SlotPlan::Target::kFastest, SlotPlan::Target::kPortable}) {
    SlotPlan plan(target);
    ASSERT_TRUE(plan.Compile(std::string_view(text).substr(0, planned.size()), fields, 2));
    SeparatorIndex separators(plan.scan());
    separators.Start(text.data(), text.data() + text.size() - kPadding);
    uint64_t keys[2] = {};
    float label = 0, dense = 0;
    const SlotPlan::Targets targets = {keys, nullptr, {&label, &dense, nullptr, nullptr}};
    const char* end = plan.Follow(text.data(), separators.From(text.data(), plan.tokens()), targets);
    ASSERT_EQ(end, text.data() + planned.size());
    EXPECT_EQ(keys[0], 1234567u);
    EXPECT_EQ(keys[1], 99999999999u);
    EXPECT_EQ(dense, static_cast<float>(0.00497512437811));
    EXPECT_EQ(label, 1);
    ASSERT_NE(plan.Follow(end + 1, separators.From(end + 1, plan.tokens()), targets), nullptr);
    EXPECT_EQ(keys[1], 1234567890123456u);
    EXPECT_EQ(dense, -7.25f);
    EXPECT_EQ(label, 0);
  }
}

// Every way in which a line can leave the plan, on both targets.
TEST(SlotPlan, TakesOnlyLinesThatFollowIt) {
  const FieldMap fields = FieldMap::Make(TextSchema()).value();
  const std::string planned = "click:1 other:x d:0.5 1:1234567 2:99";
  const auto follows = [&](const std::string& line, SlotPlan::Target target) {
    SlotPlan plan(target);
    const std::string text = line + "\n" + planned + "\n" + std::string(kPadding, '9');
    EXPECT_TRUE(plan.Compile(std::string_view(text).substr(line.size() + 1, planned.size()), fields, 2));
    SeparatorIndex separators(plan.scan());
    separators.Start(text.data(), text.data() + text.size() - kPadding);
    uint64_t keys[2] = {};
    float label = 0, dense = 0;
    const char* const end = plan.Follow(text.data(), separators.From(text.data(), plan.tokens()),
                                        {keys, nullptr, {&label, &dense, nullptr, nullptr}});
    EXPECT_TRUE(end == nullptr || *end == '\n') << line;
    return end != nullptr;
  };
  for (const SlotPlan::Target target : {SlotPlan::Target::kFastest, SlotPlan::Target::kPortable}) {
    EXPECT_TRUE(follows("click:0 other:y!:z d:-1.25 1:18446744073709551615 2:0\r", target));
    for (const char* const line : {"",
                                   "click:1",
                                   "click:1 other:x d:0.5 1:1",
                                   "click:1 other:x d:0.5 1:1 2:",
                                   "click:1 other:x d:0.5 1: 2:1",
                                   "click:1 other:x d:0.5 1:1 2:1 ",
                                   "click:1 other:x d:0.5 1:1 2:1 2:1",
                                   " click:1 other:x d:0.5 1:1 2:1",
                                   "click:1  other:x d:0.5 1:1 2:1",
                                   "click:1 other:x d:0.5 1:1\t2:1",
                                   "click:1 other: d:0.5 1:1 2:1",
                                   "clicks:1 other:x d:0.5 1:1 2:1",
                                   "click:1 others:x d:0.5 1:1 2:1",
                                   "click:1 other:x d:0.5 2:1 1:1",
                                   "click:1 other:x d:0.5 1:-1 2:1",
                                   "click:1 other:x d:0.5 1:1x 2:1",
                                   "click:1 other:x d:0.5 1:1\x01 2:1",
                                   "click:1 other:x d:0.5 1:18446744073709551616 2:1",
                                   "click:1 other:x d:0.5e1 1:1 2:1",
                                   "click:1 other:x d:.5 1:1 2:1",
                                   "click:1 other:x d:5. 1:1 2:1",
                                   "click:x other:x d:0.5 1:1 2:1",
                                   "click:1 other:x d:0.12345678901234567 1:1 2:1",
                                   "click:1 other:x d:0.5 1:1 2:1\r\r"})
      EXPECT_FALSE(follows(line, target)) << line;
  }
}

Schema TwoLabels() {
  Schema schema = TextSchema();
  schema.labels = {"click", "price"};
  schema.real_labels = {"price"};
  return schema;
}

std::vector<float> TextLabels(const SampleBlock& block) { return {block.labels.begin(), block.labels.end()}; }

// Lines that follow the plan, and lines that do not: labels in another order, apart, with exponents.
TEST(SlotText, ReadsSeveralLabels) {
  const SampleBlock block = ParseText(TwoLabels(),
                                      "click:1 price:2.5 d:0.5 1:10\n"
                                      "click:0 price:-17 d:0.5 1:11\n"
                                      "click:1 price:0.001 d:0.5 1:12\n"
                                      "price:1e30 d:0.5 1:13 click:0\n"
                                      "price:8 d:0.5 1:14 click:0.25\n"
                                      "price:12345678.5 d:0.5 1:15 click:1\n");
  ASSERT_EQ(block.size, 6) << block.bad[0].reason;
  EXPECT_EQ(block.label_dim, 2);
  EXPECT_EQ(TextLabels(block), std::vector<float>({1, 2.5f, 0, -17, 1, 0.001f, 0, 1e30f, 0.25f, 8, 1, 12345678.5f}));
  for (int s = 0; s < 6; ++s) EXPECT_EQ(TextBag(block, s, 0), Ids({10u + static_cast<uint64_t>(s)}));
}

TEST(SlotText, EveryLabelMustComeOnceAndBeInItsRange) {
  const std::string good = "click:1 price:2.5 d:0.5 1:10\n";
  const std::pair<std::string, std::string> cases[] = {
      {"click:2 price:2.5 d:0.5 1:10", "slot 'click': expected a label from 0 to 1, found '2'"},
      {"click:-0.5 price:2.5 d:0.5 1:10", "slot 'click': expected a label from 0 to 1, found '-0.5'"},
      {"click:1 price:nan d:0.5 1:10", "slot 'price': expected a finite number, found 'nan'"},
      {"click:1 price:1e39 d:0.5 1:10", "slot 'price': expected a finite number, found '1e39'"},
      {"click:1 d:0.5 1:10", "expected 1 value of the label slot 'price', found 0"},
      {"price:1 d:0.5 1:10", "expected 1 value of the label slot 'click', found 0"},
      {"click:1 price:1 price:2 d:0.5 1:10", "expected 1 value of the label slot 'price', found 2"},
      {"click:1 click:1 d:0.5 1:10", "expected 1 value of the label slot 'click', found 2"},
  };
  for (const auto& [line, reason] : cases) {
    const SampleBlock block = ParseText(TwoLabels(), good + good + line + "\n" + good);
    EXPECT_EQ(TextLabels(block), std::vector<float>({1, 2.5f, 1, 2.5f, 1, 2.5f})) << line;
    ASSERT_EQ(block.bad.size(), 1u) << line;
    EXPECT_EQ(block.bad[0].reason, reason);
  }
}

TEST(SlotText, ARealLabelMayBeAnyFiniteNumber) {
  Schema schema = TextSchema();
  schema.real_labels = {"click"};
  const SampleBlock block = ParseText(schema, "click:7 d:1\nclick:-3.5 d:1\nclick:-3e38 d:1\nclick:inf d:1\n");
  EXPECT_EQ(TextLabels(block), std::vector<float>({7, -3.5f, -3e38f}));
  EXPECT_EQ(block.bad_lines, 1u);
}

TEST(SlotText, LabelsThatAreNotReadMayLackOrBeAnything) {
  Schema schema = TwoLabels();
  schema.label_use = LabelUse::kAbsent;
  const SampleBlock block = ParseText(schema, "d:1 1:5\nd:2 1:6\nclick:1 price:x d:3 1:7\nclick:1 price:y d:4 1:8\n");
  ASSERT_EQ(block.size, 4) << block.bad[0].reason;
  EXPECT_EQ(block.label_dim, 0);
  EXPECT_TRUE(block.labels.empty());
  EXPECT_EQ(TextBag(block, 3, 0), Ids({8}));
}

TEST(SlotText, RefusesLabelsThatCannotBe) {
  Schema schema = TwoLabels();
  schema.labels.push_back("click");
  EXPECT_EQ(MakeSlotTextParser(schema).status().message(), "slot 'click' is declared twice");
  schema.labels = {};
  EXPECT_EQ(MakeSlotTextParser(schema).status().message(), "the schema names no label slot");
  schema.labels = {"click"};
  EXPECT_EQ(MakeSlotTextParser(schema).status().message(),
            "slot 'price' is declared as a label that may be any number, and is no label");
}

TEST(SlotText, RefusesASchemaThatNamesASlotTwice) {
  Schema schema = TextSchema();
  schema.sparse_slots.push_back("d");
  EXPECT_EQ(MakeSlotTextParser(schema).status().message(), "slot 'd' is declared twice");
}

}  // namespace
}  // namespace regatta::data
