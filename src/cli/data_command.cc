#include "cli/data_command.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <thread>

#include "absl/strings/str_split.h"
#include "base/elapsed.h"
#include "base/printable.h"
#include "data/dataset_factory.h"
#include "data/file_list.h"
#include "data/generator.h"
#include "data/parser/format.h"
#include "data/shared_ids.h"
#include "data/split.h"

namespace regatta::cli {
namespace {

using Clock = std::chrono::steady_clock;

int Fail(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "error: %s\n", base::PrintableLines(std::string(status.message())).c_str());
  return exit_code;
}

// ---- gen

struct GenArguments {
  data::GeneratorOptions options;
  std::string compress = "none";
  int threads = 0;
};

void ShowProgress(uint64_t done, uint64_t total) {
  std::fprintf(stderr, "\r%5.1f%%  %llu of %llu samples",
               100.0 * static_cast<double>(done) / static_cast<double>(total), static_cast<unsigned long long>(done),
               static_cast<unsigned long long>(total));
}

void PrintCeiling(const char* name, const data::Ceiling& ceiling) {
  if (ceiling.samples == 0) return;
  std::printf("%s: %llu samples, click rate %.4f, ceiling (Bayes) auc %.6f, logloss %.6f\n", name,
              static_cast<unsigned long long>(ceiling.samples),
              static_cast<double>(ceiling.clicks) / static_cast<double>(ceiling.samples), ceiling.auc, ceiling.logloss);
}

int RunGen(GenArguments& arguments) {
  data::GeneratorOptions& options = arguments.options;
  options.threads = arguments.threads > 0 ? arguments.threads : static_cast<int>(std::thread::hardware_concurrency());
  options.compression = arguments.compress == "gz"    ? data::Compression::kGzip
                        : arguments.compress == "zst" ? data::Compression::kZstd
                                                      : data::Compression::kNone;
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  const Clock::time_point start = Clock::now();
  auto result = data::Generate(options, on_terminal ? &ShowProgress : nullptr);
  if (on_terminal) std::fprintf(stderr, "\r\033[K");
  if (!result.ok()) return Fail(result.status(), absl::IsInvalidArgument(result.status()) ? 2 : 1);
  const double seconds = base::SecondsSince(start);
  PrintCeiling("train", result->train);
  PrintCeiling("test", result->test);
  const double samples = static_cast<double>(options.samples + options.test_samples);
  std::printf("%.1f MB of %s in %.2f s (%.0f samples/s) under %s; the ceiling is in %s/ceiling.json\n",
              static_cast<double>(result->bytes) * 1e-6, options.format.c_str(), seconds, samples / seconds,
              options.out.c_str(), options.out.c_str());
  return 0;
}

void AddGen(CLI::App& data, int& exit_code) {
  auto arguments = std::make_shared<GenArguments>();
  data::GeneratorOptions& options = arguments->options;
  data::TruthOptions& truth = options.truth;
  CLI::App* gen = data.add_subcommand("gen", "Write Criteo-shaped click data with a known truth and AUC ceiling");
  gen->add_option("--out", options.out, "Folder to write to: train/, test/ and ceiling.json")->required();
  gen->add_option("--samples", options.samples, "Training samples")->capture_default_str();
  gen->add_option("--test-samples", options.test_samples, "Held-out samples of the same truth")->capture_default_str();
  gen->add_option("--files", options.files, "Files to spread the training samples over")->capture_default_str();
  gen->add_option("--test-files", options.test_files, "Files of the held-out samples")->capture_default_str();
  std::vector<std::string> formats;
  for (const data::FormatEntry& format : data::kFormats) formats.emplace_back(format.name);
  gen->add_option("--format", options.format, "Input format to write")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
  gen->add_option("--compress", arguments->compress, "Compression of the files")
      ->check(CLI::IsMember({"none", "gz", "zst"}))
      ->capture_default_str();
  gen->add_option("--seed", truth.seed, "The same seed and settings give the same files")->capture_default_str();
  gen->add_option("--ids", truth.ids, "Ids of the largest slot; slots have from 10 to that many")
      ->capture_default_str();
  gen->add_option("--ids-per-slot", truth.ids_per_slot, "Ids a sample has in each slot")->capture_default_str();
  gen->add_option("--slots", truth.slots, "Sparse slots, named 1, 2, …")->capture_default_str();
  gen->add_option("--dense", truth.dense, "Dense features: 0 or 13")->capture_default_str();
  gen->add_option("--zipf", truth.zipf, "Exponent of the ids' frequencies; 0 = uniform")->capture_default_str();
  gen->add_option("--missing", truth.missing, "Share of slots left empty")->capture_default_str();
  gen->add_option("--click-rate", truth.click_rate, "Share of clicks")->capture_default_str();
  gen->add_option("--signal", truth.signal, "Standard deviation of the true logit: more = a higher ceiling")
      ->capture_default_str();
  gen->add_option("--dense-share", truth.dense_share, "Share of the logit's variance from dense features")
      ->capture_default_str();
  gen->add_option("--cross-share", truth.cross_share, "Share of the logit's variance from crosses of slots")
      ->capture_default_str();
  gen->add_option("--threads", arguments->threads, "Threads, a file each; 0 = every core")->capture_default_str();
  gen->footer(
      "Examples:\n"
      "  regatta data gen --out /tmp/criteo --samples 1000000 --test-samples 200000 --files 8\n"
      "  regatta data gen --out /tmp/big --samples 100000000 --files 64 --compress zst --ids 1000000\n"
      "  regatta data gen --out /tmp/raw --samples 100000 --format criteo_tsv\n"
      "Then set runner.train_data_dir to <out>/train and runner.test_data_dir to <out>/test.\n"
      "The ceiling is the AUC of the true click probabilities on the very samples written: no model can do better.");
  gen->callback([arguments, &exit_code] { exit_code = RunGen(*arguments); });
}

// ---- split

struct SplitArguments {
  int count = 2;
  bool round_robin = false;
  std::vector<std::string> files;
};

int RunSplit(const SplitArguments& arguments) {
  for (const std::string& file : arguments.files) {
    auto result = data::SplitFile(file, arguments.count,
                                  arguments.round_robin ? data::LineSplit::kRoundRobin : data::LineSplit::kContiguous);
    if (!result.ok()) return Fail(result.status(), absl::IsInvalidArgument(result.status()) ? 2 : 1);
    std::printf("%s: %llu lines → %s … %s\n", file.c_str(), static_cast<unsigned long long>(result->lines),
                result->pieces.front().c_str(), result->pieces.back().c_str());
  }
  return 0;
}

void AddSplit(CLI::App& data, int& exit_code) {
  auto arguments = std::make_shared<SplitArguments>();
  CLI::App* split = data.add_subcommand("split", "Cut files into pieces, line by line, beside the originals");
  split->add_option("--count", arguments->count, "Pieces of each file")->required()->check(CLI::Range(1, 10'000));
  split->add_flag("--round-robin", arguments->round_robin, "Line i goes to piece i % count (default: even blocks)");
  split->add_option("files", arguments->files, "Files to cut; .gz and .zst pieces are compressed alike")->required();
  split->footer(
      "Example:\n"
      "  regatta data split --count 3 train.txt test.txt\n"
      "writes train.txt-00000, train.txt-00001, train.txt-00002 and the same of test.txt. Workers then read their own\n"
      "pieces with runner.split_file_list: True (and runner.file_split: mod for piece number % workers).");
  split->callback([arguments, &exit_code] { exit_code = RunSplit(*arguments); });
}

// ---- check

struct CheckArguments {
  std::vector<std::string> patterns;
  data::DatasetOptions options;
  std::string labels = "click", real_labels;  // names, separated by commas
  bool no_labels = false;
  int slots = 26;
  bool pipe_shell = false;
};

void PrintSharedIds(const data::SharedIds& ids, const data::Schema& schema) {
  const auto example = ids.example();
  if (!example.has_value()) return;
  std::printf(
      "%llu of %s%llu distinct ids occur in several slots, such as %llu in %s and %s. Each is one row for all of "
      "them; set runner.id_space: slot if the ids of each slot mean something else\n",
      static_cast<unsigned long long>(ids.shared()), ids.distinct() == data::SharedIds::kMost ? "the first " : "",
      static_cast<unsigned long long>(ids.distinct()), static_cast<unsigned long long>(example->id),
      schema.sparse_slots[example->first_slot].c_str(), schema.sparse_slots[example->second_slot].c_str());
}

void SetLabels(const CheckArguments& arguments, data::Schema& schema) {
  schema.labels = absl::StrSplit(arguments.labels, ',');
  schema.real_labels = absl::StrSplit(arguments.real_labels, ',', absl::SkipEmpty());
  schema.label_use = arguments.no_labels ? data::LabelUse::kAbsent : data::LabelUse::kRead;
}

int RunCheck(CheckArguments& arguments) {
  data::DatasetOptions& options = arguments.options;
  SetLabels(arguments, options.schema);
  for (const std::string& pattern : arguments.patterns) {
    auto files = data::ExpandFiles(pattern);
    if (!files.ok()) return Fail(files.status(), 1);
    options.files.insert(options.files.end(), files->begin(), files->end());
  }
  if (options.schema.sparse_slots.empty())
    for (int slot = 1; slot <= arguments.slots; ++slot) options.schema.sparse_slots.push_back(std::to_string(slot));
  options.pipe_shell = arguments.pipe_shell ? data::PipeShell::kYes : data::PipeShell::kNo;
  // Counting them is the point; every file is read to its end.
  options.max_bad_lines = UINT64_MAX;
  const Clock::time_point start = Clock::now();
  auto dataset = data::MakeDataset(options);
  if (!dataset.ok()) return Fail(dataset.status(), 1);
  data::SharedIds ids;
  absl::Status status = (*dataset)->BeginPass({});
  while (status.ok()) {
    auto batch = (*dataset)->Next();
    if (!batch.ok()) status = batch.status();
    if (!batch.ok() || *batch == nullptr) break;
    ids.Add(**batch);
    (*dataset)->Recycle(*std::move(batch));
  }
  if (status.ok()) status = (*dataset)->EndPass();
  const data::Progress progress = (*dataset)->progress();
  std::printf("%zu files, %llu good lines, %llu bad lines, %.1f MB in %.2f s\n", options.files.size(),
              static_cast<unsigned long long>(progress.samples), static_cast<unsigned long long>(progress.bad_lines),
              static_cast<double>(progress.bytes_done) * 1e-6, base::SecondsSince(start));
  if (!status.ok()) return Fail(status, 1);
  PrintSharedIds(ids, options.schema);
  if (progress.bad_lines > 0 && !options.quarantine_path.empty())
    std::printf("the bad lines and their reasons: %s\n", options.quarantine_path.c_str());
  return progress.bad_lines > 0 ? 1 : 0;
}

void AddCheck(CLI::App& data, int& exit_code) {
  auto arguments = std::make_shared<CheckArguments>();
  data::DatasetOptions& options = arguments->options;
  options.schema.dense_dim = 13;
  CLI::App* check = data.add_subcommand("check", "Parse files as training would and report bad lines");
  check->add_option("paths", arguments->patterns, "Files, folders or globs")->required();
  check->add_option("--format", options.format, "slot_text, criteo_tsv, slot_reader, multislot; else detected");
  check->add_option("--label", arguments->labels, "Name of the label slot; of several, separated by commas")
      ->capture_default_str();
  check->add_option("--real-label", arguments->real_labels,
                    "Those of them that may be any number, not only from 0 to 1");
  check->add_flag("--no-labels", arguments->no_labels, "The lines need no label, as for regatta infer --no_labels");
  check->add_option("--slots", arguments->slots, "Sparse slots, named 1, 2, …")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  check->add_option("--sparse", options.schema.sparse_slots, "Names of the sparse slots, instead of --slots")
      ->delimiter(',');
  check->add_option("--dense", options.schema.dense_dim, "Values of the dense slot")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  check->add_option("--dense-slot", options.schema.dense_slot, "Name of the dense slot")->capture_default_str();
  check->add_option("--pipe-command", options.pipe_command, "Command that turns the files into MultiSlot");
  check->add_flag("--pipe-shell", arguments->pipe_shell, "Run it through sh -c");
  check->add_option("--readers", options.readers, "Reader threads")->check(CLI::Range(1, 1024))->capture_default_str();
  check->add_option("--quarantine", options.quarantine_path, "File to keep the bad lines in, with file:line: reason");
  check->footer(
      "Examples:\n"
      "  regatta data check data/train\n"
      "  regatta data check --quarantine bad.txt 'logs/2026-*/part-*.gz'\n"
      "  regatta data check --label label --sparse feat_idx --dense 0 lr.txt\n"
      "  regatta data check --label click,price --real-label price data/train\n"
      "Exit code 0: every line is good; 1: there are bad lines, or files that cannot be read.");
  options.quarantine_named = base::NamedBy::kUser;
  check->callback([arguments, &exit_code] { exit_code = RunCheck(*arguments); });
}

}  // namespace

void AddDataCommand(CLI::App& app, int& exit_code) {
  CLI::App* data = app.add_subcommand("data", "Generate, split and check training data");
  data->require_subcommand(1);
  AddGen(*data, exit_code);
  AddSplit(*data, exit_code);
  AddCheck(*data, exit_code);
}

}  // namespace regatta::cli
