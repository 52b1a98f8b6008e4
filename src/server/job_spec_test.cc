// What a worker may say about its job, and in which time a server knows what it thinks of it.
#include "server/job_spec.h"

#include <gmock/gmock.h>

#include "checkpoint/schema_json.h"

namespace regatta::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

table::ModelConfig SomeTables(int count = 2) {
  table::ModelConfig tables;
  for (int i = 0; i < count; ++i) {
    tables.sparse.emplace_back().name = absl::StrCat("table", i);
    tables.sparse.back().dim = 9;
  }
  tables.dense.parameters = {{"w", {3, 4}, {}}};
  return tables;
}

ps::JobSpec SomeJob(const table::ModelConfig& tables = SomeTables()) {
  ps::JobSpec spec;
  spec.set_mode("sync");
  spec.set_workers(2);
  spec.set_servers(1);
  spec.set_sparse_lanes(2);
  spec.set_nan_policy("skip");
  spec.set_on_worker_loss("fail");
  spec.set_tables_json(checkpoint::ToJson(tables).dump());
  (*spec.mutable_settings())["runner.epochs"] = "3";
  return spec;
}

std::string Problem(const ps::JobSpec& spec) {
  const absl::Status status = ParseJobSpec(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(JobSpec, IsReadAsItWasWritten) {
  const auto job = ParseJobSpec(SomeJob());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->mode, base::Mode::kSync);
  EXPECT_EQ(job->tables, SomeTables());
}

TEST(JobSpec, TablesThatAreNestedTooDeeplyAreRefused) {
  for (const char open : {'[', '{'}) {
    ps::JobSpec spec = SomeJob();
    spec.set_tables_json(std::string(200'000, open));
    EXPECT_THAT(Problem(spec), HasSubstr("tables: nested too deeply at byte 32"));
    spec.set_tables_json(absl::StrCat("{\"sparse\":[],\"x\":", std::string(200'000, '['), std::string(200'000, ']'),
                                      ",\"dense\":{\"parameters\":[]}}"));
    EXPECT_THAT(Problem(spec), HasSubstr("tables: nested too deeply"));
    EXPECT_FALSE(Differences(SomeJob(), spec).empty());
  }
}

TEST(JobSpec, UnknownFieldsAreRefusedWithTheNearestKnownOne) {
  const std::string text = SomeJob().tables_json();
  const std::vector<std::array<const char*, 3>> cases = {
      {"\"sparse\":[", "\"sparce\":1,\"sparse\":[", "tables: unknown field 'sparce'; did you mean sparse?"},
      {"\"dim\":9", "\"dim\":9,\"dims\":9", "tables.sparse[0]: unknown field 'dims'; did you mean dim?"},
      {"\"beta1\":", "\"betta1\":0.5,\"beta1\":", "tables.sparse[0].rule: unknown field 'betta1'; did you mean beta1?"},
      {"\"parameters\":", "\"zzz\":{},\"parameters\":", "tables.dense: unknown field 'zzz'"},
      {"\"shape\":", "\"shapes\":[1],\"shape\":", "tables.dense.parameters[0]: unknown field 'shapes'"},
      {"\"dim\":9", "\"dim\":9,\"\\u001b[2J\\n\":9", "tables.sparse[0]: unknown field '\\x1b[2J\\n'"},
  };
  for (const auto& [from, to, want] : cases) {
    std::string changed = text;
    changed.replace(changed.find(from), std::string(from).size(), to);
    ps::JobSpec spec = SomeJob();
    spec.set_tables_json(changed);
    EXPECT_THAT(Problem(spec), HasSubstr(want));
  }
}

TEST(JobSpec, ItsPartsAreBounded) {
  ps::JobSpec spec = SomeJob();
  spec.set_tables_json(std::string(5 << 20, ' '));
  EXPECT_THAT(Problem(spec), HasSubstr("tables: too large"));
  EXPECT_THAT(Problem(SomeJob(SomeTables(4097))), HasSubstr("4097 tables; the limit is 4096"));

  table::ModelConfig tables = SomeTables();
  tables.sparse[1].name = "table0";
  EXPECT_THAT(Problem(SomeJob(tables)), HasSubstr("two tables are named table0"));
  tables.sparse[1].name = "evil\nI1117 all is well";
  EXPECT_THAT(Problem(SomeJob(tables)), HasSubstr("the table 'evil\\nI1117 all is well'"));
  tables.sparse[1].name = std::string(300, 'x');
  EXPECT_THAT(Problem(SomeJob(tables)), HasSubstr("at most 256 bytes"));

  tables = SomeTables();
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{int64_t{1} << 40},
                                            {1 << 20, 1 << 20, 1 << 20, 1 << 20},
                                            {int64_t{1} << 62, 4},
                                            {-1},
                                            {0, -1}}) {
    tables.dense.parameters = {{"w", shape, {}}};
    EXPECT_THAT(Problem(SomeJob(tables)), HasSubstr("the shape of w"));
  }
  tables.dense.parameters = {{"a", {1 << 29}, {}}, {"b", {1 << 29}, {}}, {"c", {1}, {}}};
  EXPECT_THAT(Problem(SomeJob(tables)), HasSubstr("the shape of c"));

  spec = SomeJob();
  (*spec.mutable_settings())["runner.epochs"] = std::string(5000, '1');
  EXPECT_THAT(Problem(spec), HasSubstr("settings.runner.epochs: 5000 bytes"));
  spec = SomeJob();
  (*spec.mutable_settings())["a\x1b[2J"] = "1";
  EXPECT_THAT(Problem(spec), HasSubstr("the setting 'a\\x1b[2J'"));
  spec = SomeJob();
  for (int i = 0; i < 100; ++i) (*spec.mutable_settings())[absl::StrCat(i)] = "";
  EXPECT_THAT(Problem(spec), HasSubstr("settings: 101 of them"));
  spec = SomeJob();
  spec.set_mode("\x1b[31m" + std::string(1000, 'm'));
  EXPECT_THAT(Problem(spec), HasSubstr("mode: '\\x1b[31mmmm"));
  EXPECT_LT(Problem(spec).size(), 300u);
}

TEST(JobSpec, DifferencesNameTheFields) {
  const ps::JobSpec here = SomeJob();
  EXPECT_TRUE(Differences(here, here).empty());
  ps::JobSpec there = here;
  there.set_mode("async");
  (*there.mutable_settings())["runner.epochs"] = "4";
  (*there.mutable_settings())["runner.seed"] = "1";
  table::ModelConfig tables = SomeTables();
  tables.sparse[0].dim = 16;
  tables.dense.parameters[0].shape = {3, 4, 1};
  there.set_tables_json(checkpoint::ToJson(tables).dump());
  EXPECT_THAT(
      Differences(here, there),
      ElementsAre("mode: \"sync\" here, \"async\" there", "runner.epochs: \"3\" here, \"4\" there",
                  "runner.seed: nothing here, \"1\" there", "tables.dense.parameters.0.shape.2: nothing here, 1 there",
                  "tables.sparse.0.dim: 9 here, 16 there"));
  // The order in which a worker writes its fields is nothing that differs.
  there = here;
  there.set_tables_json(checkpoint::JsonTree::parse(here.tables_json()).dump());
  EXPECT_TRUE(Differences(here, there).empty());
}

// Quadratic, these would take minutes.
TEST(JobSpec, LargeTablesAreComparedInNoTime) {
  const auto tables = [](const char* value) {
    std::string text = "{";
    for (int i = 0; i < 60'000; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "\"k", i, "\":", value);
    return text + "}";
  };
  ps::JobSpec here = SomeJob(), there = SomeJob();
  here.set_tables_json(tables("1"));
  there.set_tables_json(tables("1") + "\n");
  EXPECT_TRUE(Differences(here, there).empty());
  there.set_tables_json(tables("2"));
  EXPECT_EQ(Differences(here, there).size(), 12u);
  EXPECT_EQ(Differences(here, SomeJob()).size(), 12u);
  EXPECT_THAT(Problem(here), HasSubstr("unknown field 'k0'"));
  EXPECT_TRUE(ParseJobSpec(SomeJob(SomeTables(4096))).ok());
}

// Written out, the paths of these leaves would take gigabytes.
TEST(JobSpec, ALongKeyAboveManyLeavesIsComparedInNoTime) {
  const auto tables = [](size_t key_bytes, int leaves) {
    std::string text = absl::StrCat("{\"", std::string(key_bytes, 'k'), "\":[0");
    for (int i = 1; i < leaves; ++i) text += ",0";
    return text + "]}";
  };
  ps::JobSpec here = SomeJob(), there = SomeJob();
  there.set_tables_json(tables(30'000, 15'000));  // as large as is read at all
  EXPECT_EQ(Differences(here, there).size(), 12u);
  here.set_tables_json(tables(200'000, 50'000));
  there.set_tables_json(tables(200'000, 49'999));
  EXPECT_FALSE(Differences(here, there).empty());
}

TEST(JobSpec, TablesThatAreMuchLargerThanOursAreNotRead) {
  ps::JobSpec there = SomeJob();
  there.set_tables_json(std::string(1 << 20, '['));
  EXPECT_THAT(Differences(SomeJob(), there), ElementsAre(HasSubstr("1048576 bytes there")));
}

TEST(JobSpec, PartsThatAreTooLongAreNotLookedAt) {
  EXPECT_TRUE(CheckSize(SomeJob()).ok());
  ps::JobSpec long_mode = SomeJob(), many_settings = SomeJob(), long_tables = SomeJob();
  long_mode.set_mode(std::string(1000, 'x'));
  for (int i = 0; i < 1000; ++i) (*many_settings.mutable_settings())[absl::StrCat(i)] = "x";
  long_tables.set_tables_json(std::string((4 << 20) + 1, ' '));
  for (const ps::JobSpec& spec : {long_mode, many_settings, long_tables})
    EXPECT_EQ(CheckSize(spec).code(), absl::StatusCode::kInvalidArgument);
}

TEST(JobSpec, TablesOfTooManyValuesAreRefused) {
  std::string lists = "[[]";
  for (int i = 0; i < 700'000; ++i) lists += ",[]";
  ps::JobSpec job = SomeJob();
  job.set_tables_json(lists + "]");
  EXPECT_THAT(Problem(job), HasSubstr("too many values"));
}

}  // namespace
}  // namespace regatta::server
