#include "data/parser/format.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/hash.h"

namespace regatta::data {
namespace {

using Ids = std::vector<uint64_t>;

SampleBlock Parse(const FormatEntry& format, const Schema& schema, const std::string& text) {
  auto parser = format.make(schema);
  EXPECT_TRUE(parser.ok()) << parser.status();
  const std::string padded = text + std::string(kPadding, '1');
  SampleBlock block;
  (*parser)->Parse(std::string_view(padded).substr(0, text.size()), block);
  return block;
}

Ids Bag(const SampleBlock& block, int sample, int slot) {
  const size_t bag = static_cast<size_t>(sample * block.slots + slot);
  return {block.keys.data() + block.BagBegin(bag), block.keys.data() + block.ends[bag]};
}

Schema SmallSchema() {
  Schema schema;
  schema.sparse_slots = {"2", "3"};
  schema.dense_dim = 2;
  schema.dense_slot = "d";
  return schema;
}

std::string CriteoLine(const std::string& label, const std::string& dense, const std::string& first_hex) {
  std::string line = label;
  for (int i = 0; i < 13; ++i) line += "\t" + (i == 0 ? dense : i == 1 ? std::string("3") : std::string());
  for (int i = 0; i < 26; ++i) line += "\t" + (i == 0 ? first_hex : i == 25 ? std::string("0a1b2c3d") : std::string());
  return line + "\n";
}

TEST(CriteoTsv, NormalisesDenseAndHashesStrings) {
  const SampleBlock block = Parse(*FindFormat("benchmark_reader"), CriteoSchema(),
                                  CriteoLine("1", "5", "68fd1e64") + CriteoLine("0", "", ""));
  ASSERT_EQ(block.size, 2) << block.bad[0].reason;
  EXPECT_EQ(block.labels[0], 1);
  EXPECT_EQ(block.dense[0], static_cast<float>(5.0 / 20));
  EXPECT_EQ(block.dense[1], static_cast<float>((3.0 + 3) / 603));
  EXPECT_EQ(block.dense[2], 0);
  EXPECT_EQ(block.dense[13], 0);
  // From a Python script of its own: checkpoints depend on the value.
  EXPECT_EQ(Bag(block, 0, 0), Ids({0x7CED3ABF5BC9FD0DULL}));
  EXPECT_EQ(Bag(block, 0, 25), Ids({base::HashBytes("0a1b2c3d", 26)}));
  EXPECT_NE(base::HashBytes("0a1b2c3d", 26), base::HashBytes("0a1b2c3d", 25));
  EXPECT_TRUE(Bag(block, 0, 1).empty());
  EXPECT_TRUE(Bag(block, 1, 0).empty());
}

TEST(CriteoTsv, RefusesWrongFields) {
  const FormatEntry& format = *FindFormat("criteo_tsv");
  const SampleBlock block = Parse(format, CriteoSchema(),
                                  CriteoLine("1", "x", "68fd1e64") + CriteoLine("1", "1", "no hex") +
                                      CriteoLine("?", "1", "") + "1\t2\t3\n" + CriteoLine("1", "1", "a\tb"));
  EXPECT_EQ(block.size, 0);
  ASSERT_EQ(block.bad.size(), 5u);
  EXPECT_EQ(block.bad[0].reason, "I1: expected a number, found 'x'");
  EXPECT_EQ(block.bad[1].reason, "C1: expected a hex string, found 'no hex'");
  EXPECT_EQ(block.bad[2].reason, "label: expected a finite number, found '?'");
  EXPECT_EQ(block.bad[3].reason, "expected 40 fields separated by tabs, found 3");
  EXPECT_EQ(block.bad[4].reason, "expected 40 fields separated by tabs, found 41");
  EXPECT_TRUE(block.keys.empty());
  EXPECT_FALSE(format.make(SmallSchema()).ok());
}

TEST(Formats, BlankLinesAreSkipped) {
  Schema schema = SmallSchema();
  schema.dense_dim = 0;
  const struct {
    const char* format;
    std::string line;
  } kCases[] = {{"slot_text", "click:1 2:10 3:20\n"},
                {"slot_reader", "1:1 10:2 20:3\n"},
                {"multislot", "1 1 1 10 1 20\n"},
                {"criteo_tsv", CriteoLine("1", "5", "68fd1e64")}};
  for (const auto& c : kCases) {
    const Schema& its_schema = std::string(c.format) == "criteo_tsv" ? CriteoSchema() : schema;
    const SampleBlock block = Parse(*FindFormat(c.format), its_schema, "\n" + c.line + "\r\n   \n" + c.line + "bad\n");
    EXPECT_EQ(block.size, 2) << c.format;
    EXPECT_EQ(block.lines, 6u) << c.format;
    ASSERT_EQ(block.bad.size(), 1u) << c.format;
    EXPECT_EQ(block.bad[0].line, 5u) << c.format;
  }
}

// One line of every format, its label to be filled in; the formats' own tests are about the rest of the line.
TEST(Formats, LabelsAreFrom0To1) {
  Schema schema = SmallSchema();
  schema.dense_dim = 0;
  const auto lines = [&](const std::string& label) {
    return std::map<std::string, std::string>{{"slot_text", schema.labels[0] + ":" + label + " 1:5 2:6\n"},
                                              {"criteo_tsv", CriteoLine(label, "1", "68fd1e64")},
                                              {"slot_reader", label + ":1 5:2 6:3\n"},
                                              {"multislot", "1 " + label + " 1 5 1 6\n"}};
  };
  for (const FormatEntry& format : kFormats) {
    const std::string name(format.name);
    const Schema& its_schema = name == "criteo_tsv" ? CriteoSchema() : schema;
    for (const char* good : {"0", "1", "0.25", "1.0"}) {
      const SampleBlock block = Parse(format, its_schema, lines(good).at(name));
      ASSERT_EQ(block.size, 1) << name << " " << good;
      EXPECT_EQ(block.labels[0], std::stof(good)) << name;
    }
    for (const char* bad : {"7", "-1", "1.001", "-0.5"}) {
      const SampleBlock block = Parse(format, its_schema, lines("1").at(name) + lines(bad).at(name));
      EXPECT_EQ(block.size, 1) << name << " " << bad;
      ASSERT_EQ(block.bad.size(), 1u) << name << " " << bad;
      EXPECT_NE(block.bad[0].reason.find("expected a label from 0 to 1, found '" + std::string(bad)), std::string::npos)
          << name << ": " << block.bad[0].reason;
    }
  }
}

std::vector<float> LabelsOf(const SampleBlock& block) { return {block.labels.begin(), block.labels.end()}; }

TEST(Formats, TakeSeveralLabels) {
  Schema schema = SmallSchema();
  schema.labels = {"click", "price"};
  schema.real_labels = {"price"};
  schema.dense_dim = 0;
  const std::map<std::string, std::string> lines = {
      {"slot_text", "price:-2.5 click:1 2:10 3:20\nclick:0 price:300 2:11 3:21\n"},
      {"slot_reader", "1:1 -2.5:2 10:4 20:5\n0:1 300:2 11:4 21:5\n"},  // its slots 1 and 2 are the labels
      {"multislot", "1 1 1 -2.5 1 10 1 20\n1 0 1 300 1 11 1 21\n"}};
  for (const auto& [name, text] : lines) {
    const SampleBlock block = Parse(*FindFormat(name), schema, text);
    ASSERT_EQ(block.size, 2) << name << ": " << block.bad[0].reason;
    EXPECT_EQ(block.label_dim, 2) << name;
    EXPECT_EQ(LabelsOf(block), std::vector<float>({1, -2.5f, 0, 300})) << name;
    EXPECT_EQ(Bag(block, 0, 0), Ids({10})) << name;
    EXPECT_EQ(Bag(block, 1, 1), Ids({21})) << name;
  }
  Schema criteo = CriteoSchema();
  criteo.labels = {"click", "price"};
  EXPECT_EQ(FindFormat("criteo_tsv")->make(criteo).status().message(),
            "raw Criteo has one label, the model reads 2: slot text has any number of them");
}

// Where labels are not read, a line with and a line without.
TEST(Formats, TakeLinesWithoutLabels) {
  Schema schema = SmallSchema();
  schema.dense_dim = 0;
  schema.label_use = LabelUse::kAbsent;
  Schema criteo = CriteoSchema();
  criteo.label_use = LabelUse::kAbsent;
  const std::string criteo_line = CriteoLine("1", "5", "68fd1e64");
  const struct {
    const char* format;
    std::string lines;
  } kCases[] = {{"slot_text", "2:10 3:20\nclick:1 2:11\n"},
                {"slot_reader", "10:2 20:3\n1:1 11:2\n"},
                {"multislot", "1 10 1 20\n1 11 0\n"},
                {"criteo_tsv", criteo_line.substr(2) + criteo_line + "?" + criteo_line.substr(1)}};
  for (const auto& c : kCases) {
    const bool is_criteo = std::string(c.format) == "criteo_tsv";
    const SampleBlock block = Parse(*FindFormat(c.format), is_criteo ? criteo : schema, c.lines);
    ASSERT_EQ(block.size, is_criteo ? 3 : 2) << c.format << ": " << block.bad[0].reason;
    EXPECT_EQ(block.label_dim, 0) << c.format;
    EXPECT_TRUE(block.labels.empty()) << c.format;
    EXPECT_EQ(Bag(block, 0, 0), is_criteo ? Ids({0x7CED3ABF5BC9FD0DULL}) : Ids({10})) << c.format;
    EXPECT_EQ(Bag(block, 1, 0), is_criteo ? Ids({0x7CED3ABF5BC9FD0DULL}) : Ids({11})) << c.format;
  }
}

TEST(SlotReader, RaisesSlotsByTheNumberOfLabels) {
  Schema schema;
  schema.labels = {"click", "buy", "stay"};
  schema.sparse_slots = {"2", "10"};
  const std::string line = "1:1 0:2 0.5:3 50:5 60:13\n";
  for (const LabelUse use : {LabelUse::kRead, LabelUse::kAbsent}) {
    schema.label_use = use;
    const SampleBlock block = Parse(*FindFormat("slot_reader"), schema, line);
    ASSERT_EQ(block.size, 1) << block.bad[0].reason;
    EXPECT_EQ(Bag(block, 0, 0), Ids({50}));
    EXPECT_EQ(Bag(block, 0, 1), Ids({60}));
  }
  schema.sparse_slots = {"4", "10"};  // none of them is a label's
  schema.label_use = LabelUse::kRead;
  EXPECT_EQ(Bag(Parse(*FindFormat("slot_reader"), schema, "1:1 0:2 0.5:3 50:4 60:10\n"), 0, 1), Ids({60}));
}

TEST(SlotReader, ReadsSignsOfSlots) {
  Schema schema = SmallSchema();
  schema.dense_dim = 0;
  const SampleBlock block = Parse(*FindFormat("slot_reader"), schema,
                                  "1:1 18446744073709551615:2 7:3 8:3 5:99\n0:1 0:3\n2:2 1:1 -1:3\n5\n3:2\n");
  ASSERT_EQ(block.size, 2);
  EXPECT_EQ(Bag(block, 0, 0), Ids({UINT64_MAX}));
  EXPECT_EQ(Bag(block, 0, 1), Ids({7, 8}));
  EXPECT_EQ(Bag(block, 1, 0), Ids({}));
  EXPECT_EQ(Bag(block, 1, 1), Ids({0}));
  EXPECT_EQ(block.labels[0], 1);
  EXPECT_EQ(block.labels[1], 0);
  ASSERT_EQ(block.bad.size(), 3u);
  EXPECT_EQ(block.bad[0].reason, "slot '3': expected an id from 0 to 2^64-1, found '-1'");
  EXPECT_EQ(block.bad[1].reason, "expected feasign:slot, found '5'");
  EXPECT_EQ(block.bad[2].reason, "expected 1 value of the label slot '1', found 0");
}

TEST(SlotReader, RaisesSlotsOfAModelThatDeclaresSlot1) {
  Schema schema;
  schema.sparse_slots = {"1", "2"};
  const SampleBlock block = Parse(*FindFormat("slot_reader"), schema, "1:1 50:2 60:3\n");
  ASSERT_EQ(block.size, 1);
  EXPECT_EQ(Bag(block, 0, 0), Ids({50}));
  EXPECT_EQ(Bag(block, 0, 1), Ids({60}));
}

TEST(MultiSlot, ReadsCountsAndValuesInDeclaredOrder) {
  const SampleBlock block =
      Parse(*FindFormat("multislot"), SmallSchema(), "1 1 2 5 6 0 2 0.5 -1\n1 0 0 1 18446744073709551615 2 0 0\r\n");
  ASSERT_EQ(block.size, 2) << block.bad[0].reason;
  EXPECT_EQ(Bag(block, 0, 0), Ids({5, 6}));
  EXPECT_EQ(Bag(block, 0, 1), Ids({}));
  EXPECT_EQ(Bag(block, 1, 1), Ids({UINT64_MAX}));
  EXPECT_EQ(block.dense[0], 0.5f);
  EXPECT_EQ(block.dense[1], -1.0f);
}

TEST(MultiSlot, RefusesWrongCountsAndTrailingText) {
  const SampleBlock block = Parse(*FindFormat("multislot"), SmallSchema(),
                                  "1 1 2 5 6 0 2 0.5\n1 1 0 0 2 1 2 9\n1 1 0 0 1 1\n1 1 x\n1 1 1 -5 0 2 1 1\n\n"
                                  "1 1 99999999999999999999 1\n");
  EXPECT_EQ(block.size, 0);
  ASSERT_EQ(block.bad.size(), 6u) << "a blank line is none";
  EXPECT_EQ(block.bad[0].reason, "slot 'd': expected 2 values, found 1 and the end of the line");
  EXPECT_EQ(block.bad[1].reason, "expected the end of the line after 4 slots, found '9'");
  EXPECT_EQ(block.bad[2].reason, "expected 2 values of the dense slot 'd', found 1");
  EXPECT_EQ(block.bad[3].reason, "slot '2': expected a number of values, found 'x'");
  EXPECT_EQ(block.bad[4].reason, "slot '2': expected an id from 0 to 2^64-1, found '-5'");
  EXPECT_NE(block.bad[5].reason.find("expected a number of values"), std::string::npos);
  EXPECT_TRUE(block.keys.empty());
}

TEST(Format, IsDetectedFromTheFirstLines) {
  const std::string pad(kPadding, ' ');
  auto detect = [&](const Schema& schema, const std::string& text) {
    const std::string padded = text + pad;
    auto format = DetectFormat(std::string_view(padded).substr(0, text.size()), schema);
    return format.ok() ? std::string((*format)->name) : std::string(format.status().message());
  };
  EXPECT_EQ(detect(SmallSchema(), "click:0 d:1 d:2 2:5\n"), "slot_text");
  EXPECT_EQ(detect(SmallSchema(), "garbage\nclick:0 d:1 d:2 2:5\n"), "slot_text");
  EXPECT_EQ(detect(CriteoSchema(), CriteoLine("1", "5", "68fd1e64")), "criteo_tsv");
  EXPECT_EQ(detect(SmallSchema(), "1:1 5:2 0.5:d 1:d\n"), "slot_reader");
  EXPECT_EQ(detect(SmallSchema(), "1 1 2 5 6 0 2 0.5 -1\n"), "multislot");
  EXPECT_NE(detect(SmallSchema(), "{\"click\": 1}\n").find("no format takes the first lines"), std::string::npos);
  Schema unlabelled = SmallSchema();
  unlabelled.dense_dim = 0;
  unlabelled.label_use = LabelUse::kAbsent;
  EXPECT_EQ(detect(unlabelled, "2:5 3:6\n2:7 3:8\n"), "slot_text");
  EXPECT_EQ(detect(unlabelled, "500:2 600:3\n700:2 800:3\n"), "slot_reader");
  EXPECT_EQ(detect(unlabelled, "1 500 1 600\n"), "multislot");
  EXPECT_EQ(FindFormat("criteo_reader"), &kFormats[0]);
  EXPECT_EQ(FindFormat("reader"), nullptr);
}

}  // namespace
}  // namespace regatta::data
