#include "settings/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/params.h"
#include "settings/key_table.h"
#include "settings/table_parameters.h"
#include "table/rule/rule.h"

namespace regatta::settings {
namespace {

using base::Config;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The shape of PaddleRec's rank/dnn configuration.
constexpr char kDnn[] = R"(# global settings
runner:
  train_data_dir: "data/sample_data/train"
  train_reader_path: "criteo_reader"  # importlib format
  use_gpu: False
  use_auc: True
  train_batch_size: 2
  epochs: 3
  print_interval: 2
  model_save_path: "output_model_dnn"
  test_data_dir: "data/sample_data/test"
  infer_batch_size: 4
  infer_reader_path: "criteo_reader"
  infer_load_path: "output_model_dnn"
  infer_start_epoch: 0
  infer_end_epoch: 3
  use_inference: True
  save_inference_feed_varnames: ["C1", "C2", "dense_input"]
  save_inference_fetch_varnames: ["sigmoid_0.tmp_0"]
  sync_mode: "async"
  thread_num: "1"
  reader_type: "InMemoryDataset"
  pipe_command: "python3 queuedataset_reader.py"
  dataset_debug: False
  split_file_list: False
hyper_parameters:
  optimizer:
    class: Adam
    learning_rate: 0.001
    strategy: async
  sparse_inputs_slots: 27
  sparse_feature_number: 1000001
  sparse_feature_dim: 9
  dense_input_dim: 13
  fc_sizes: [512, 256, 128, 32]
  distributed_embedding: 0
)";

Config Make(std::string_view yaml, std::string_view name = "/jobs/rank/dnn/config.yaml") {
  auto config = Config::Parse(yaml, name);
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

// What the whole configuration comes to when a dnn-like model has read its part.
absl::Status ReadAll(Config& config, Remarks& remarks) {
  ASSIGN_OR_RETURN(const RunConfig run, ParseRunConfig(config, Deployment::kStandalone, remarks));
  base::Params params(config, "hyper_parameters");
  params.Int("sparse_inputs_slots", {.min = 1}, 27);
  params.Int("sparse_feature_dim", {.min = 1, .max = 4096}, 9);
  params.Int("dense_input_dim", {.min = 0}, 13);
  params.IntList("fc_sizes", {.min = 1}, {});
  RETURN_IF_ERROR(params.status());
  RETURN_IF_ERROR(RuleFor(config, "embedding", run.optimizer.sparse, remarks).status());
  return CheckNoUnknown(config, remarks);
}

std::string ErrorOf(std::string_view yaml) {
  Config config = Make(yaml);
  Remarks remarks;
  const absl::Status status = ReadAll(config, remarks);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::vector<std::string> WarningsOf(std::string_view yaml) {
  Config config = Make(yaml);
  Remarks remarks;
  const absl::Status status = ReadAll(config, remarks);
  EXPECT_TRUE(status.ok()) << status;
  return remarks.warnings;
}

TEST(RunConfig, AnUpstreamConfigurationRunsUnmodified) {
  Config config = Make(kDnn);
  Remarks remarks;
  const auto run = ParseRunConfig(config, Deployment::kStandalone, remarks);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->model, "dnn");
  const RunnerOptions& r = run->runner;
  EXPECT_EQ(r.train_data_dir, "/jobs/rank/dnn/data/sample_data/train");
  EXPECT_EQ(r.test_data_dir, "/jobs/rank/dnn/data/sample_data/test");
  EXPECT_EQ(r.model_save_path, "/jobs/rank/dnn/output_model_dnn");
  EXPECT_EQ(r.infer_load_path, "/jobs/rank/dnn/output_model_dnn");
  EXPECT_EQ(r.train_reader_path, "criteo_reader");
  EXPECT_EQ(r.pipe_command, "python3 queuedataset_reader.py");
  EXPECT_EQ(r.train_batch_size, 2);
  EXPECT_EQ(r.infer_batch_size, 4);
  EXPECT_EQ(r.epochs, 3);
  EXPECT_EQ(r.thread_num, 1);
  EXPECT_EQ(r.reader_type, ReaderType::kInMemoryDataset);
  EXPECT_EQ(run->optimizer.sparse.name, "adam");
  EXPECT_EQ(run->optimizer.dense.name, "adam");
  EXPECT_EQ(run->optimizer.dense.learning_rate, 0.001);

  Config again = Make(kDnn);
  Remarks all;
  EXPECT_TRUE(ReadAll(again, all).ok());
  EXPECT_THAT(all.warnings, Contains(AllOf(HasSubstr("config.yaml:17: runner.use_inference has no effect"))));
  EXPECT_THAT(all.warnings, Contains(HasSubstr("hyper_parameters.optimizer.strategy has no effect")));
  EXPECT_THAT(all.warnings, Contains(HasSubstr("hyper_parameters.distributed_embedding has no effect")));
  EXPECT_THAT(all.warnings, Not(Contains(HasSubstr("runner.sync_mode has"))));
  EXPECT_THAT(all.notes, ElementsAre(HasSubstr("trains alone")));
}

TEST(RunConfig, AnEmptyConfigurationHasTheDefaults) {
  Config config = Make("");
  Remarks remarks;
  const auto run = ParseRunConfig(config, Deployment::kStandalone, remarks);
  ASSERT_TRUE(run.ok()) << run.status();
  const RunnerOptions& r = run->runner;
  EXPECT_EQ(r.train_batch_size, 512);
  EXPECT_EQ(r.infer_batch_size, 512);
  EXPECT_EQ(r.reader_type, ReaderType::kQueueDataset);
  EXPECT_EQ(r.thread_num, 1);
  EXPECT_EQ(r.epochs, 1);
  EXPECT_EQ(r.infer_end_epoch, 1);
  EXPECT_EQ(r.print_interval, 100);
  EXPECT_EQ(r.seed, 12345);
  EXPECT_TRUE(r.use_auc);
  EXPECT_EQ(r.nan_policy, table::NanPolicy::kSkip);
  EXPECT_EQ(r.file_split, FileSplit::kContiguous);
  EXPECT_EQ(r.sync_mode, base::Mode::kAsync);
  EXPECT_EQ(r.geo_step, 400);
  EXPECT_EQ(r.model_save_path, "/jobs/rank/dnn/output_model");
  EXPECT_EQ(r.infer_load_path, r.model_save_path);
  EXPECT_EQ(r.max_line_bytes, 8 << 20);
  EXPECT_EQ(r.train_data_dir, "");
  EXPECT_THAT(remarks.warnings, ElementsAre());
  EXPECT_THAT(remarks.notes, ElementsAre());
}

TEST(RunConfig, TheModelIsNamedByTheKeyOrTheFolder) {
  const auto name = [](std::string_view yaml, std::string_view file) {
    Config config = Make(yaml, file);
    Remarks remarks;
    return ParseRunConfig(config, Deployment::kStandalone, remarks)->model;
  };
  EXPECT_EQ(name("model: fm\n", "/x/rank/dnn/config.yaml"), "fm");
  EXPECT_EQ(name("", "/x/rank/wide_deep/config_bigdata.yaml"), "wide_deep");
  EXPECT_EQ(name("", "/x/rank/logistic_regression/config.yaml"), "lr");
  EXPECT_EQ(name("model: logistic_regression\n", "/x/config.yaml"), "lr");
}

TEST(RunConfig, AModelThatDoesNotExistIsAnErrorThatNamesThoseThatDo) {
  EXPECT_EQ(
      ErrorOf("runner:\n  epochs: 1\nmodel: dmm\n"),
      "/jobs/rank/dnn/config.yaml:3: model is 'dmm': there is no model 'dmm'; the models are lr, "
      "logistic_regression, fm, dnn, wide_deep, deepfm, dcn. Set `model:` at the top of the YAML, or put it in the "
      "model's folder");
  Config by_folder = Make("", "/x/mine/config.yaml");
  Remarks remarks;
  EXPECT_THAT(std::string(ParseRunConfig(by_folder, Deployment::kStandalone, remarks).status().message()),
              StartsWith("/x/mine/config.yaml: model: there is no model 'mine'"));
}

TEST(RunConfig, PathsAndDefaultsFollowOtherKeys) {
  Config config = Make(
      "runner: {train_data_dir: /abs/*.txt, test_data_dir: '../t', model_save_path: out, epochs: 4, train_batch_size: "
      "64, train_reader_path: slot_reader, thread_num: 0}\n");
  Remarks remarks;
  const auto run = ParseRunConfig(config, Deployment::kStandalone, remarks);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->runner.train_data_dir, "/abs/*.txt");
  EXPECT_EQ(run->runner.test_data_dir, "/jobs/rank/t");
  EXPECT_EQ(run->runner.infer_load_path, "/jobs/rank/dnn/out");
  EXPECT_EQ(run->runner.infer_end_epoch, 4);
  EXPECT_EQ(run->runner.infer_batch_size, 64);
  EXPECT_EQ(run->runner.infer_reader_path, "slot_reader");
  EXPECT_GE(run->runner.thread_num, 1);
}

TEST(RunConfig, OverridesOfTextKeysKeepTheirSpelling) {
  Config config = Make(kDnn);
  ASSERT_TRUE(config.Override("runner.pipe_command=false").ok());
  Remarks remarks;
  EXPECT_EQ(ParseRunConfig(config, Deployment::kStandalone, remarks)->runner.pipe_command, "false");
  Config empty = Make(kDnn);
  ASSERT_TRUE(empty.Override("runner.pipe_command=").ok());
  EXPECT_EQ(ParseRunConfig(empty, Deployment::kStandalone, remarks)->runner.pipe_command, "");
}

TEST(RunConfig, EveryUpstreamKeyIsKnown) {
  // Keys counted in 124 upstream configurations.
  constexpr const char* kUpstream[] = {"print_interval",
                                       "train_data_dir",
                                       "use_gpu",
                                       "model_save_path",
                                       "epochs",
                                       "train_reader_path",
                                       "train_batch_size",
                                       "test_data_dir",
                                       "infer_reader_path",
                                       "infer_load_path",
                                       "infer_start_epoch",
                                       "infer_end_epoch",
                                       "infer_batch_size",
                                       "use_auc",
                                       "sync_mode",
                                       "thread_num",
                                       "use_inference",
                                       "split_file_list",
                                       "save_inference_feed_varnames",
                                       "save_inference_fetch_varnames",
                                       "reader_type",
                                       "pipe_command",
                                       "dataset_debug",
                                       "use_xpu",
                                       "mode",
                                       "use_fleet",
                                       "is_train",
                                       "model_path",
                                       "auc_num",
                                       "num_workers",
                                       "geo_step",
                                       "model_init_path",
                                       "seed",
                                       "infer_train_epoch",
                                       "dump_fields_path",
                                       "parse_ins_id",
                                       "batches_per_epoch",
                                       "need_dump",
                                       "dump_fields",
                                       "dump_param",
                                       "infer_reader_type",
                                       "last_epoch",
                                       "checkpoint_per_pass",
                                       "save_delta_frequency",
                                       "shuffle_thread_num",
                                       "data_sleep_second",
                                       "prefetch",
                                       "split_interval",
                                       "split_per_pass",
                                       "start_day",
                                       "end_day",
                                       "infer_thread_num",
                                       "days",
                                       "pass_per_day",
                                       "need_prune",
                                       "fs_name",
                                       "fs_ugi"};
  std::set<std::string> known;
  for (const KeySpec& spec : KeyTable()) {
    EXPECT_TRUE(known.emplace(spec.path).second) << spec.path << " stands twice in the table";
    EXPECT_FALSE(spec.doc.empty()) << spec.path;
  }
  for (const char* key : kUpstream) EXPECT_TRUE(known.contains(key)) << key;
}

TEST(RunConfig, KeysWithoutEffectWarnOnceAndSayWhy) {
  EXPECT_THAT(WarningsOf("runner:\n  num_workers: 4\n  geo_step: 100\n  use_inference: False\n"),
              ElementsAre(HasSubstr("config.yaml:3: runner.geo_step has no effect: it is for workers with servers"),
                          HasSubstr("config.yaml:2: runner.num_workers has no effect: files are parsed by threads")));
  EXPECT_THAT(WarningsOf("runner:\n  split_file_list: True\n  file_split: mod\n"),
              ElementsAre(HasSubstr("runner.split_file_list has no effect: it is for workers with servers"),
                          HasSubstr("runner.file_split has no effect: it is for workers with servers")));
  EXPECT_THAT(WarningsOf("runner: {split_file_list: False}\n"), ElementsAre());
  EXPECT_THAT(WarningsOf("runner:\n  dump_fields: [a, {b: 1}]\n  mode: {x: 1}\n"), testing::SizeIs(2));
}

TEST(RunConfig, WhatIsNotAvailableIsRefusedOnlyWhenAskedFor) {
  EXPECT_THAT(ErrorOf("runner: {use_gpu: True}\n"),
              AllOf(HasSubstr("config.yaml:1: runner.use_gpu is 'True'"), HasSubstr("not available in this version")));
  EXPECT_THAT(ErrorOf("runner: {use_xpu: 1}\n"), HasSubstr("not available in this version"));
  EXPECT_THAT(ErrorOf("runner: {use_visual: True}\n"), HasSubstr("not available in this version"));
  EXPECT_THAT(ErrorOf("runner: {sync_mode: gpubox}\n"), HasSubstr("not available in this version"));
  EXPECT_THAT(ErrorOf("runner: {use_fleet: True}\n"), HasSubstr("collective training"));
  EXPECT_THAT(ErrorOf("runner: {start_day: '20190720'}\n"), HasSubstr("days and passes"));
  EXPECT_THAT(WarningsOf("runner: {use_gpu: False, use_xpu: False, use_fleet: False, use_visual: no, start_day: ''}\n"),
              ElementsAre());
  for (const char* mode : {"sync", "async", "geo", "half_async"})
    EXPECT_THAT(WarningsOf(absl::StrCat("runner: {use_fleet: True, sync_mode: ", mode, "}\n")), ElementsAre());
}

TEST(RunConfig, WrongTypesRangesAndNamesAreErrors) {
  EXPECT_EQ(ErrorOf("runner:\n  epochs: 0\n"),
            "/jobs/rank/dnn/config.yaml:2: runner.epochs is '0': want an integer from 1 to 1000000");
  EXPECT_THAT(ErrorOf("runner: {train_batch_size: many}\n"), HasSubstr("want an integer from 1 to 1048576"));
  EXPECT_THAT(ErrorOf("runner: {reader_type: QueDataset}\n"), HasSubstr("did you mean QueueDataset?"));
  EXPECT_THAT(ErrorOf("runner: {sync_mode: asink}\n"), HasSubstr("want one of async, sync, half_async, geo, gpubox"));
  EXPECT_THAT(ErrorOf("runner: {epoch: 2}\n"), HasSubstr("unknown key runner.epoch; did you mean runner.epochs?"));
  EXPECT_THAT(ErrorOf("epochs: 2\n"), HasSubstr("unknown key epochs; did you mean runner.epochs?"));
  EXPECT_THAT(ErrorOf("runer:\n  epochs: 2\n"), HasSubstr("unknown key runer.epochs; did you mean runner.epochs?"));
  EXPECT_THAT(ErrorOf("static_benchmark: True\n"), HasSubstr("unknown key static_benchmark"));
  EXPECT_THAT(ErrorOf("hyper_parameters: {fc_size: [1]}\n"), HasSubstr("did you mean hyper_parameters.fc_sizes?"));
  EXPECT_THAT(ErrorOf("hyper_parameters: {sparse_feature_dim: 0}\n"), HasSubstr("want an integer from 1 to 4096"));
  EXPECT_THAT(ErrorOf("runner: {infer_start_epoch: 3, infer_end_epoch: 1}\n"), HasSubstr("runner.infer_start_epoch"));
  EXPECT_THAT(ErrorOf("runner: {model_save_path: ''}\n"), HasSubstr("want a folder"));
}

TEST(Optimizer, ClassesStandForRules) {
  const std::tuple<const char*, const char*, const char*> cases[] = {{"Adam", "adam", "adam"},
                                                                     {"adam", "adam", "adam"},
                                                                     {"SGD", "sgd", "sgd"},
                                                                     {"Adagrad", "adagrad_v2", "adagrad"},
                                                                     {"Momentum", "momentum", "momentum"},
                                                                     {"RMSProp", "rmsprop", "rmsprop"},
                                                                     {"Ftrl", "ftrl", "ftrl"},
                                                                     {"adagrad", "adagrad_v2", "adagrad"},
                                                                     {"adagrad_v2", "adagrad_v2", "adagrad_v2"},
                                                                     {"adamax", "adamax", "adamax"}};
  for (const auto& [name, sparse, dense] : cases) {
    Config config = Make(absl::StrCat("hyper_parameters: {optimizer: {class: ", name, ", learning_rate: '0.5'}}\n"));
    Remarks remarks;
    const auto options = ParseOptimizer(config, remarks);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->sparse.name, sparse);
    EXPECT_EQ(options->dense.name, dense);
    EXPECT_EQ(options->sparse.learning_rate, 0.5);
    EXPECT_EQ(options->dense.learning_rate, 0.5);
    EXPECT_EQ(options->sparse.bound, std::string(name) == "SGD" ? 0 : -1);
  }
  EXPECT_THAT(
      ErrorOf("hyper_parameters: {optimizer: {class: Adamw}}\n"),
      AllOf(HasSubstr("want one of Adam, SGD, Adagrad, Momentum, RMSProp, Ftrl"), HasSubstr("did you mean Adam?")));
  EXPECT_THAT(ErrorOf("hyper_parameters: {optimizer: adam}\n"), HasSubstr("want a section"));
  EXPECT_THAT(ErrorOf("hyper_parameters: {optimizer: {learning_rte: 1}}\n"),
              HasSubstr("did you mean hyper_parameters.optimizer.learning_rate?"));
}

TEST(Optimizer, EveryDenseRuleCanBeTheClass) {
  for (const std::string_view name : table::DenseRuleNames()) {
    Config config = Make(absl::StrCat("hyper_parameters: {optimizer: {class: ", base::View(name), "}}\n"));
    Remarks remarks;
    const auto options = ParseOptimizer(config, remarks);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->dense.name, name);
    EXPECT_TRUE(table::MakeDenseRule(options->dense).ok());
  }
  EXPECT_THAT(ErrorOf("hyper_parameters: {optimizer: {class: shared_adam}}\n"),
              AllOf(HasSubstr("shared_adam is a rule of sparse tables only"), HasSubstr("embedx_sgd_param.name")));
}

TEST(Optimizer, SettingsReachBothRules) {
  Config config = Make("hyper_parameters: {optimizer: {beta1: 0.8, epsilon: 1e-6, nesterov: yes}, clip_by_norm: 5}\n");
  Remarks remarks;
  const auto options = ParseOptimizer(config, remarks);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->sparse.beta1, 0.8);
  EXPECT_EQ(options->dense.epsilon, 1e-6);
  EXPECT_EQ(options->dense.beta2, -1);
  EXPECT_TRUE(options->sparse.nesterov);
  EXPECT_EQ(options->clip_by_norm, 5);
}

TEST(Optimizer, SchedulesAreChecked) {
  const auto parse = [](std::string_view schedule) {
    Config config = Make(absl::StrCat("hyper_parameters: {optimizer: {lr_schedule: ", base::View(schedule), "}}\n"));
    Remarks remarks;
    return ParseOptimizer(config, remarks);
  };
  const auto exponential = parse("{name: exponential, decay_steps: 100, decay_rate: 0.9, staircase: True}");
  ASSERT_TRUE(exponential.ok()) << exponential.status();
  EXPECT_EQ(exponential->schedule.name, "exponential");
  EXPECT_EQ(exponential->schedule.decay_steps, 100);
  EXPECT_EQ(exponential->schedule.decay_rate, 0.9);
  EXPECT_TRUE(exponential->schedule.staircase);
  EXPECT_TRUE(parse("{name: piecewise, boundaries: [10, 20], values: [0.1, 0.01, 0.001]}").ok());
  EXPECT_TRUE(parse("{name: cosine, decay_steps: 10, warmup_steps: 5}").ok());
  const std::pair<const char*, const char*> bad[] = {
      {"{name: exponential, decay_rate: 0.9}", "lr_schedule.decay_steps above 0"},
      {"{name: exponential, decay_steps: 9}", "lr_schedule.decay_rate above 0"},
      {"{name: noam, d_model: 64}", "lr_schedule.warmup_steps above 0"},
      {"{name: piecewise, boundaries: [10], values: [0.1]}", "found 1 and 1"},
      {"{name: piecewise, boundaries: [20, 10], values: [1, 2, 3]}", "ascending"},
      {"{name: linear}", "want one of constant"},
      {"{name: polynomial, decay_steps: -1}", "want a number from 0"}};
  for (const auto& [text, wanted] : bad)
    EXPECT_THAT(std::string(parse(text).status().message()), HasSubstr(wanted)) << text;
}

absl::StatusOr<TableRule> Rule(std::string_view yaml, Remarks& remarks) {
  Config config = Make(yaml);
  ASSIGN_OR_RETURN(const OptimizerOptions optimizer, ParseOptimizer(config, remarks));
  ASSIGN_OR_RETURN(TableRule rule, RuleFor(config, "embedding", optimizer.sparse, remarks));
  RETURN_IF_ERROR(CheckNoUnknown(config, remarks));
  return rule;
}

TEST(TableParameters, AbsentKeepsTheOptimizersRule) {
  Remarks remarks;
  const auto rule = Rule("", remarks);
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->rule.name, "adam");
  EXPECT_EQ(rule->rule.learning_rate, 0.001);
  EXPECT_FALSE(rule->initial_range.has_value());
}

TEST(TableParameters, RuleAndSettingsTakeEffectInBothPlaces) {
  const char* const yamls[] = {
      "table_parameters:\n  embedding:\n    embedx_sgd_param: {name: SparseAdaGradSGDRule, learning_rate: 0.05, "
      "initial_g2sum: 3, initial_range: 0.0001, weight_bounds: [-10, 10]}\n",
      "table_parameters:\n  embedding:\n    shard_num: 10\n    accessor:\n      embedx_dim: 10\n      "
      "embedx_sgd_param:\n"
      "        name: SparseAdaGradSGDRule\n        adagrad: {learning_rate: 0.05, initial_g2sum: 3, initial_range: "
      "0.0001, weight_bounds: [-10.0, 10.0]}\n        adam: {beta1_decay_rate: 0.5}\n"};
  for (const char* yaml : yamls) {
    Remarks remarks;
    const auto rule = Rule(yaml, remarks);
    ASSERT_TRUE(rule.ok()) << rule.status();
    EXPECT_EQ(rule->rule.name, "adagrad");
    EXPECT_EQ(rule->rule.learning_rate, 0.05);
    EXPECT_EQ(rule->rule.initial_g2sum, 3);
    EXPECT_EQ(rule->rule.bound, 10);
    EXPECT_EQ(rule->rule.beta1, -1);
    EXPECT_EQ(rule->initial_range, 0.0001);
  }
}

TEST(TableParameters, UpstreamNamesAndOurs) {
  const std::pair<const char*, const char*> names[] = {{"SparseNaiveSGDRule", "sgd"},
                                                       {"SparseAdaGradSGDRule", "adagrad"},
                                                       {"StdAdaGradSGDRule", "std_adagrad"},
                                                       {"SparseAdamSGDRule", "adam"},
                                                       {"SparseSharedAdamSGDRule", "shared_adam"},
                                                       {"std_adagrad", "std_adagrad"},
                                                       {"ftrl", "ftrl"}};
  for (const auto& [name, rule] : names) {
    Remarks remarks;
    const auto got =
        Rule(absl::StrCat("table_parameters: {embedding: {embedx_sgd_param: {name: ", name, "}}}\n"), remarks);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->rule.name, rule);
    EXPECT_EQ(got->rule.learning_rate, 0.001);
  }
}

TEST(TableParameters, EveryRuleOfTheRuleTableCanBeChosen) {
  for (const std::string_view name : table::SparseRuleNames()) {
    Remarks remarks;
    const auto got = Rule(
        absl::StrCat("table_parameters: {embedding: {embedx_sgd_param: {name: ", base::View(name), "}}}\n"), remarks);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->rule.name, name);
    EXPECT_TRUE(table::MakeSparseRule(got->rule).ok());
  }
}

TEST(TableParameters, ATableNeedsARuleOfItsOwnWhereTheClassHasNoSparseForm) {
  const std::string yaml = "hyper_parameters: {optimizer: {class: adamax}}\n";
  Remarks remarks;
  EXPECT_THAT(
      std::string(Rule(yaml, remarks).status().message()),
      AllOf(HasSubstr("hyper_parameters.optimizer.class"), HasSubstr("adamax is a rule of dense parameters only"),
            HasSubstr("table_parameters.embedding.embedx_sgd_param.name"), HasSubstr("shared_adam")));
  const auto rule = Rule(yaml + "table_parameters: {embedding: {embedx_sgd_param: {name: naive}}}\n", remarks);
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->rule.name, "naive");
}

TEST(TableParameters, WhatCannotBeIsRefused) {
  Remarks remarks;
  const std::pair<const char*, const char*> bad[] = {
      {"{embedding: {accessor_class: CtrCommonAccessor}}", "not available in this version"},
      {"{embedding: {accessor: {accessor_class: DownpourCtrAccessor}}}", "not available in this version"},
      {"{embedding: {accessor_class: Foo}}", "want plain"},
      {"{embedding: {embedx_sgd_param: {name: StdAdagradRule}}}", "want one of naive, sgd"},
      {"{embedding: {embedx_sgd_param: {weight_bounds: [-1, 10]}}}", "want [-b, b]"},
      {"{embedding: {embedx_sgd_param: {learning_rte: 1}}}", "unknown key"},
      {"{embeding: {embedx_sgd_param: {name: sgd}}}",
       "did you mean table_parameters.embedding.embedx_sgd_param.name?"}};
  for (const auto& [text, wanted] : bad) {
    const auto rule = Rule(absl::StrCat("table_parameters: ", text, "\n"), remarks);
    EXPECT_THAT(std::string(rule.status().message()), HasSubstr(wanted)) << text;
  }
}

TEST(TableParameters, CtrSettingsWithoutTheAccessorAreRemarked) {
  Remarks remarks;
  const auto rule =
      Rule("table_parameters: {embedding: {ctr_accessor_param: {nonclk_coeff: 0.1}, embedx_threshold: 10}}\n", remarks);
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_THAT(remarks.warnings, testing::SizeIs(2));
}

TEST(ConfigText, ShowsEveryValueWithItsOrigin) {
  Config config = Make(kDnn);
  ASSERT_TRUE(config.Override("runner.epochs=7").ok());
  Remarks remarks;
  ASSERT_TRUE(ReadAll(config, remarks).ok());
  const std::string text = ConfigText(config);
  EXPECT_THAT(text, testing::ContainsRegex("runner.epochs = 7 +\\(-o\\)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("runner.seed = 12345 +\\(default\\)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("runner.train_batch_size = 2 +\\(/jobs/rank/dnn/config.yaml:7\\)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("runner.use_inference = true +\\(.*:17, no effect\\)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("hyper_parameters.fc_sizes = \\[512, 256, 128, 32\\] +\\(.*:35\\)\n"));
  const auto json = nlohmann::json::parse(ConfigJson(config));
  EXPECT_EQ(json["runner.epochs"]["value"], 7);
  EXPECT_EQ(json["runner.epochs"]["origin"], "-o");
  EXPECT_EQ(json["runner.use_inference"]["effect"], false);
  EXPECT_EQ(json["hyper_parameters.fc_sizes"]["value"].size(), 4u);
  EXPECT_EQ(json.size(), config.Effective().size());
}

TEST(Keys, ReferenceCoversWhatTheParsersRead) {
  Config config = Make("");
  Remarks remarks;
  ASSERT_TRUE(ParseRunConfig(config, Deployment::kStandalone, remarks).ok());
  const std::string page = KeysMarkdown();
  for (const base::ConfigUse& use : config.Effective()) {
    if (use.path == "model") continue;
    EXPECT_THAT(page, HasSubstr(absl::StrCat("| ", use.path, " |")));
  }
}

TEST(Keys, PageIsUpToDate) {
  const char* source = std::getenv("REGATTA_SOURCE");
  if (source == nullptr) GTEST_SKIP() << "REGATTA_SOURCE is not set; ctest sets it";
  const auto page = base::ReadFile(absl::StrCat(source, "/docs/keys.md"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page, KeysMarkdown()) << "run: regatta config --keys > docs/keys.md";
}

}  // namespace
}  // namespace regatta::settings
