#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/params.h"

namespace regatta::base {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Config Make(std::string_view yaml) {
  auto config = Config::Parse(yaml, "jobs/c.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

std::string ParseError(std::string_view yaml) {
  const auto config = Config::Parse(yaml, "c.yaml");
  EXPECT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

template <typename T>
std::string ErrorOf(const absl::StatusOr<T>& value) {
  EXPECT_FALSE(value.ok());
  return std::string(value.status().message());
}

TEST(Config, ReadsTypedValuesByDottedPath) {
  Config c = Make("runner:\n  epochs: 3\n  rate: 1e-3\n  name: dnn\n  use: True\n  sizes: [4, 5]\nlist: [a, 'b c']\n");
  EXPECT_EQ(*c.Int("runner.epochs", 1), 3);
  EXPECT_EQ(*c.Double("runner.rate", 1), 1e-3);
  EXPECT_EQ(*c.String("runner.name", ""), "dnn");
  EXPECT_EQ(*c.Bool("runner.use", false), true);
  EXPECT_THAT(*c.IntList("runner.sizes", {}), ElementsAre(4, 5));
  EXPECT_THAT(*c.StringList("list", {}), ElementsAre("a", "b c"));
  EXPECT_EQ(*c.Int("runner.missing", 7), 7);
}

TEST(Config, NumbersComeInManySpellings) {
  Config c = Make("a: '12'\nb: \"0.5\"\nc: 1e6\nd: 1_000_000\ne: 0x10\nf: +3\ng: -4\nh: 1.5\ni: .5\n");
  EXPECT_EQ(*c.Int("a", 0), 12);
  EXPECT_EQ(*c.Double("b", 0), 0.5);
  EXPECT_EQ(*c.Int("c", 0), 1000000);
  EXPECT_EQ(*c.Int("d", 0), 1000000);
  EXPECT_EQ(*c.Int("e", 0), 16);
  EXPECT_EQ(*c.Int("f", 0), 3);
  EXPECT_EQ(*c.Int("g", 0), -4);
  EXPECT_FALSE(c.Int("h", 0).ok());
  EXPECT_EQ(*c.Double("i", 0), 0.5);
}

TEST(Config, BooleansComeInYamlsSpellings) {
  Config c = Make("a: true\nb: True\nc: YES\nd: on\ne: False\nf: no\ng: Off\nh: 0\ni: 'true'\nj: maybe\n");
  for (const char* key : {"a", "b", "c", "d", "i"}) EXPECT_TRUE(*c.Bool(key, false)) << key;
  for (const char* key : {"e", "f", "g", "h"}) EXPECT_FALSE(*c.Bool(key, true)) << key;
  EXPECT_EQ(ErrorOf(c.Bool("j", true)), "jobs/c.yaml:10: j is 'maybe': want True or False");
}

TEST(Config, ErrorsNameFileLineKeyFoundAndWanted) {
  Config c = Make("runner:\n  epochs: two\n  batch: 0\n  rate: [1]\n  sub: {x: 1}\n  empty:\n  sizes: [1, two]\n");
  EXPECT_EQ(ErrorOf(c.Int("runner.epochs", 1, {1, 100})),
            "jobs/c.yaml:2: runner.epochs is 'two': want an integer from 1 to 100");
  EXPECT_EQ(ErrorOf(c.Int("runner.batch", 1, {.min = 1})),
            "jobs/c.yaml:3: runner.batch is '0': want an integer of at least 1");
  EXPECT_EQ(ErrorOf(c.Double("runner.rate", 1)), "jobs/c.yaml:4: runner.rate is the list [1]: want a number");
  EXPECT_EQ(ErrorOf(c.Int("runner.sub", 1)), "jobs/c.yaml:5: runner.sub: found a section, want an integer");
  EXPECT_EQ(ErrorOf(c.Int("runner.empty", 1)), "jobs/c.yaml:6: runner.empty is empty: want an integer");
  EXPECT_THAT(ErrorOf(c.IntList("runner.sizes", {}, {.min = 1})),
              AllOf(HasSubstr("c.yaml:7: runner.sizes"), HasSubstr("want a list such as [400, 400], each an integer of "
                                                                   "at least 1")));
  EXPECT_THAT(ErrorOf(c.IntList("runner.batch", {})), HasSubstr("want a list"));
  EXPECT_THAT(ErrorOf(c.String("runner.rate", "")), HasSubstr("want a text"));
}

TEST(Config, IntegersOutsideTheirTypeAreRefused) {
  Config c = Make("a: 99999999999999999999\nb: 1e400\nc: nan\nd: .inf\ne: 9223372036854775807\nf: 1e300\n");
  EXPECT_FALSE(c.Int("a", 0).ok());
  EXPECT_FALSE(c.Double("b", 0).ok());
  EXPECT_FALSE(c.Double("c", 0).ok());
  EXPECT_FALSE(c.Double("d", 0).ok());
  EXPECT_EQ(*c.Int("e", 0), INT64_MAX);
  EXPECT_FALSE(c.Int("f", 0).ok());
}

TEST(Config, SizesTakeUnits) {
  Config c = Make("a: 1000\nb: 64K\nc: 8G\nd: 1.5GiB\ne: 2 mb\nf: lots\n");
  EXPECT_EQ(*c.Bytes("a", 0), 1000);
  EXPECT_EQ(*c.Bytes("b", 0), 65536);
  EXPECT_EQ(*c.Bytes("c", 0), int64_t{8} << 30);
  EXPECT_EQ(*c.Bytes("d", 0), int64_t{3} << 29);
  EXPECT_EQ(*c.Bytes("e", 0), 2 << 20);
  EXPECT_THAT(ErrorOf(c.Bytes("f", 0)), HasSubstr("want a size such as 64M or 8G"));
}

TEST(Config, AnOverrideWinsAndIsItsOrigin) {
  Config c = Make("runner:\n  epochs: 3\n");
  ASSERT_TRUE(c.Override("runner.epochs=5").ok());
  ASSERT_TRUE(c.Override("runner.fresh=x=y").ok());
  ASSERT_TRUE(c.Override("hyper.sizes=[64, 32]").ok());
  ASSERT_TRUE(c.Override("rate=1e-3").ok());
  EXPECT_EQ(*c.Int("runner.epochs", 1), 5);
  EXPECT_EQ(*c.String("runner.fresh", ""), "x=y");
  EXPECT_THAT(*c.IntList("hyper.sizes", {}), ElementsAre(64, 32));
  EXPECT_EQ(*c.Double("rate", 0), 1e-3);
  EXPECT_EQ(c.OriginOf("runner.epochs").ToString(), "-o");
}

TEST(Config, AScalarOverrideOfATextKeepsItsSpelling) {
  const std::pair<const char*, const char*> cases[] = {
      {"false", "false"},
      {"", ""},
      {"null", "null"},
      {"~", "~"},
      {"007", "007"},
      {"'quoted text'", "quoted text"},
      {"\"a\\tb\"", "a\tb"},
      {"cat a.txt | grep \"x: y\"", "cat a.txt | grep \"x: y\""},
      {"awk '{print $1}'", "awk '{print $1}'"},
      {"[ -f x ] && cat", "[ -f x ] && cat"},
      {"{ cat; }", "{ cat; }"},
      {"sed s/a/b/ # not a comment", "sed s/a/b/ # not a comment"},
      {"@weird", "@weird"},
      {"a: b", "a: b"},
      {"[1, 2]", "[1, 2]"},
  };
  for (const auto& [typed, wanted] : cases) {
    Config c = Make("runner: {cmd: old}\n");
    ASSERT_TRUE(c.Override(absl::StrCat("runner.cmd=", typed)).ok());
    const auto text = c.String("runner.cmd", "fallback");
    ASSERT_TRUE(text.ok()) << typed << text.status();
    EXPECT_EQ(*text, wanted);
    EXPECT_TRUE(c.CheckAllRead().ok()) << c.CheckAllRead();
  }
}

TEST(Config, AMapOverrideSetsItsKeysAndKeepsTheRest) {
  Config c = Make("a:\n  x: 1\n  y: 2\n");
  ASSERT_TRUE(c.Override("b={x: 5, z: {w: 6}}").ok());
  EXPECT_EQ(*c.Int("a.x", 0), 1);
  EXPECT_EQ(*c.Int("b.x", 0), 5);
  EXPECT_EQ(*c.Int("b.z.w", 0), 6);
}

TEST(Config, AMalformedOverrideIsAnErrorForATypedKey) {
  Config c = Make("");
  ASSERT_TRUE(c.Override("sizes=[1, 2").ok());
  EXPECT_THAT(ErrorOf(c.IntList("sizes", {})), AllOf(HasSubstr("-o sizes"), HasSubstr("bracket that is not closed")));
  EXPECT_THAT(std::string(c.Override("no-equals").message()), HasSubstr("want key=value"));
  EXPECT_FALSE(c.Override("=5").ok());
  EXPECT_FALSE(c.Override("").ok());
}

TEST(Config, UnknownKeysAreNamedWithTheNearest) {
  Config c = Make("runner:\n  epoch: 3\n  thread_nums: 2\n  zebra: 1\nfc_sizes: [1]\n");
  ASSERT_TRUE(c.Override("runner.sed=1").ok());
  for (const char* key : {"runner.epochs", "runner.thread_num", "runner.seed"}) ASSERT_TRUE(c.Int(key, 1).ok());
  const std::string known[] = {"hyper_parameters.fc_sizes"};
  const std::string message(c.CheckAllRead(known).message());
  EXPECT_THAT(message, HasSubstr("jobs/c.yaml:2: unknown key runner.epoch; did you mean runner.epochs?"));
  EXPECT_THAT(message, HasSubstr("jobs/c.yaml:3: unknown key runner.thread_nums; did you mean runner.thread_num?"));
  EXPECT_THAT(message, testing::EndsWith("jobs/c.yaml:4: unknown key runner.zebra"));
  EXPECT_THAT(message, HasSubstr("jobs/c.yaml:5: unknown key fc_sizes; did you mean hyper_parameters.fc_sizes?"));
  EXPECT_THAT(message, HasSubstr("-o: unknown key runner.sed; did you mean runner.seed?"));
}

TEST(Config, ARightNameInTheWrongSectionFindsItsSection) {
  Config c = Make("hyper_parameters:\n  epochs: 3\n");
  ASSERT_TRUE(c.Int("runner.epochs", 1).ok());
  EXPECT_THAT(std::string(c.CheckAllRead().message()), HasSubstr("did you mean runner.epochs?"));
}

TEST(Config, AScalarWhereASectionBelongsSaysSo) {
  Config c = Make("runner: 5\nhyper_parameters:\n");
  ASSERT_TRUE(c.Int("runner.epochs", 1).ok());
  ASSERT_TRUE(c.Int("hyper_parameters.dim", 1).ok());
  EXPECT_EQ(std::string(c.CheckAllRead().message()),
            "jobs/c.yaml:1: runner is '5': want a section of 'key: value' lines");
}

TEST(Config, EffectiveValuesCarryTheirOrigin) {
  Config c = Make("runner:\n  epochs: '3'\n  idle: [1, 2]\n");
  ASSERT_TRUE(c.Override("runner.name=x").ok());
  ASSERT_TRUE(c.Int("runner.epochs", 1).ok());
  ASSERT_TRUE(c.Double("runner.rate", 0.1).ok());
  ASSERT_TRUE(c.String("runner.name", "").ok());
  EXPECT_TRUE(c.Ignore("runner.idle"));
  EXPECT_FALSE(c.Ignore("runner.absent"));
  std::vector<std::string> lines;
  for (const ConfigUse& use : c.Effective())
    lines.push_back(absl::StrCat(use.path, "=", use.json, " ", use.origin.ToString(),
                                 use.effect == ConfigUse::Effect::kNone ? " none" : ""));
  EXPECT_THAT(lines, ElementsAre("runner.epochs=3 jobs/c.yaml:2", "runner.idle=[1, 2] jobs/c.yaml:3 none",
                                 "runner.name=\"x\" -o", "runner.rate=0.1 default"));
  EXPECT_TRUE(c.CheckAllRead().ok());
}

TEST(Config, ChoicesIgnoreCaseAndNameTheNearest) {
  constexpr std::string_view kNames[] = {"InmemoryDataset", "QueueDataset"};
  Config c = Make("a: InMemoryDataset\nb: QueueDatset\n");
  EXPECT_EQ(*c.Choice("a", "QueueDataset", kNames), "InmemoryDataset");
  EXPECT_EQ(ErrorOf(c.Choice("b", "QueueDataset", kNames)),
            "jobs/c.yaml:2: b is 'QueueDatset': want one of InmemoryDataset, QueueDataset; did you mean QueueDataset?");
}

// --- Bad YAML -------------------------------------------------------------------------------------------------------

TEST(BadYaml, MalformedNamesLineAndColumn) {
  EXPECT_THAT(ParseError("runner:\n  epochs: [1, 2\n"), HasSubstr("c.yaml:3:1: not YAML"));
  EXPECT_THAT(ParseError("a: 1\n b: 2\n"), HasSubstr("c.yaml:2:"));
  EXPECT_THAT(ParseError("a: \"never closed\n"), HasSubstr("c.yaml:1:4: a quote that is not closed"));
  EXPECT_THAT(ParseError("a: 'never closed"), HasSubstr("a quote that is not closed"));
  EXPECT_THAT(ParseError("a: 1\n\tb: 2\n"), HasSubstr("c.yaml:2:"));
}

TEST(BadYaml, DuplicateKeysNameBothLines) {
  EXPECT_EQ(ParseError("runner:\n  epochs: 1\n  seed: 2\n  epochs: 3\n"),
            "c.yaml:4:3: key 'epochs' is given twice, on lines 2 and 4; keep one of them");
  EXPECT_THAT(ParseError("runner:\n  a: 1\nrunner:\n  b: 1\n"), HasSubstr("lines 1 and 3"));
  EXPECT_THAT(ParseError("runner:\n  a: 1\nrunner.a: 2\n"),
              HasSubstr("key 'runner.a' is given twice, on lines 2 and 3"));
}

TEST(BadYaml, AnchorsAliasesAndTagsAreRefused) {
  EXPECT_THAT(ParseError("a: &x [1]\nb: *x\n"), HasSubstr("c.yaml:1:4: an anchor"));
  EXPECT_THAT(ParseError("a: &x 1\n"), HasSubstr("an anchor"));
  EXPECT_THAT(ParseError("a: !!python/object:os.system 1\n"), HasSubstr("a tag"));
  EXPECT_THAT(ParseError("a: !!int [1]\n"), HasSubstr("a tag"));
}

TEST(BadYaml, DeepNestingIsRefused) {
  std::string fits, deep;
  for (int i = 0; i < 31; ++i) fits += std::string(i, ' ') + "a:\n";
  fits += std::string(31, ' ') + "a: 1\n";
  deep = fits.substr(0, fits.size() - 3) + "\n" + std::string(32, ' ') + "a: 1\n";
  EXPECT_TRUE(Config::Parse(fits, "c.yaml").ok()) << Config::Parse(fits, "c.yaml").status();
  EXPECT_THAT(ParseError(deep), HasSubstr("c.yaml:33:33: nested deeper than 32 levels"));
  EXPECT_THAT(ParseError(absl::StrCat("a: ", std::string(100000, '['))), HasSubstr("not closed"));
  EXPECT_THAT(ParseError(std::string(100000, '{')), HasSubstr("not closed"));
  EXPECT_THAT(ParseError(absl::StrCat("a: ", std::string(9999, '['), std::string(9999, ']'))),
              HasSubstr("nested deeper"));
}

TEST(BadYaml, AHugeTextIsRefused) {
  EXPECT_THAT(ParseError("a: " + std::string((1 << 20) + 1, 'x')), HasSubstr("a configuration has at most 1048576"));
  const std::string fits = "a: " + std::string(1000000, 'x');
  EXPECT_TRUE(Config::Parse(fits, "c.yaml").ok());
}

TEST(BadYaml, BinaryIsRefused) {
  EXPECT_THAT(ParseError(std::string("a: b\0c", 6)), HasSubstr("c.yaml:1:5: byte 0x00"));
  EXPECT_THAT(ParseError("a: 1\nb: \xff\xfe\n"), HasSubstr("c.yaml:2:4: byte 0xff"));
  EXPECT_THAT(ParseError("\x1f\x8b\x08"), HasSubstr("byte 0x1f"));
  EXPECT_TRUE(Config::Parse("a: größe ✓\n", "c.yaml").ok());
}

TEST(BadYaml, OtherShapesAreRefused) {
  EXPECT_THAT(ParseError("just text\n"), HasSubstr("'key: value' lines"));
  EXPECT_THAT(ParseError("- 1\n- 2\n"), HasSubstr("'key: value' lines"));
  EXPECT_THAT(ParseError("a: 1\n---\nb: 2\n"), HasSubstr("second document"));
  EXPECT_THAT(ParseError("? [1, 2]\n: 3\n"), HasSubstr("keys are names"));
  EXPECT_THAT(ParseError("'': 3\n"), HasSubstr("keys are names"));
  EXPECT_TRUE(Config::Parse("", "c.yaml").ok());
  EXPECT_TRUE(Config::Parse("# only a comment\n", "c.yaml").ok());
}

TEST(BadYaml, AMissingOrHugeFileNamesThePath) {
  EXPECT_THAT(std::string(Config::Load("/nowhere/c.yaml").status().message()), HasSubstr("/nowhere/c.yaml"));
  EXPECT_THAT(std::string(Config::Load("/tmp").status().message()), HasSubstr("is a folder"));
  std::string path = testing::TempDir() + "/config_test_XXXXXX";
  ASSERT_GE(mkstemp(path.data()), 0);
  std::ofstream(path) << "a: " << std::string(2 << 20, 'x');
  EXPECT_THAT(std::string(Config::Load(path).status().message()), AllOf(HasSubstr(path), HasSubstr("1048576")));
  std::ofstream(path) << "a: 5\n";
  auto config = Config::Load(path);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(*config->Int("a", 0), 5);
  EXPECT_EQ(config->folder(), std::filesystem::path(path).lexically_normal().parent_path());
  unlink(path.c_str());
}

TEST(Params, KeepTheFirstErrorAndReadOn) {
  Config c = Make("hyper_parameters:\n  dim: none\n  rate: -1\n  fc_sizes: [512, 256]\n");
  Params params(c, "hyper_parameters");
  EXPECT_EQ(params.Int("dim", {.min = 1, .max = 4096}, 9), 9);
  EXPECT_EQ(params.Double("rate", {.min = 0}, 0.5), 0.5);
  EXPECT_THAT(params.IntList("fc_sizes", {.min = 1}, {}), ElementsAre(512, 256));
  EXPECT_EQ(params.String("activation", "relu"), "relu");
  EXPECT_TRUE(params.Bool("bias", true));
  EXPECT_THAT(std::string(params.status().message()),
              AllOf(HasSubstr("c.yaml:2: hyper_parameters.dim is 'none'"), HasSubstr("from 1 to 4096")));
}

TEST(Params, AModelsOwnRuleIsAnErrorAtTheKey) {
  Config c = Make("hyper_parameters:\n  fc_sizes: []\n");
  Params params(c, "hyper_parameters");
  EXPECT_THAT(params.IntList("fc_sizes", {.min = 1}, {4}), ElementsAre());
  EXPECT_TRUE(params.status().ok());
  params.Fail("fc_sizes", "want at least one layer");
  EXPECT_EQ(std::string(params.status().message()),
            "jobs/c.yaml:2: hyper_parameters.fc_sizes is the list []: want at least one layer");
}

TEST(Config, PartsOfAMapGivenToOAreTexts) {
  auto config = Config::Parse("a: {b: x}\n", "c.yaml");
  ASSERT_TRUE(config.ok());
  ASSERT_TRUE(config->Override("a={b: exponential, c: 3}").ok());
  EXPECT_EQ(config->String("a.b", "").value(), "exponential");
  EXPECT_EQ(config->Int("a.c", 0).value(), 3);
}

}  // namespace
}  // namespace regatta::base
