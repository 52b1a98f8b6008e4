#include "cli/checkpoint_command.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/dump.h"
#include "checkpoint/model_difference.h"
#include "checkpoint/npz_model.h"
#include "checkpoint/save_list.h"
#include "checkpoint/schema_json.h"
#include "nlohmann/json.hpp"

namespace regatta::cli {
namespace {

using Json = nlohmann::ordered_json;
using checkpoint::CheckpointReader;

enum class Output : uint8_t { kText, kJson };

// What the subcommands were given; lives as long as the parser.
struct Arguments {
  std::string path, other, table, dense, like, out;
  uint64_t key = 0;
  bool all = false;
  bool json = false;
  Output output() const { return json ? Output::kJson : Output::kText; }
};

absl::Status WriteOut(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return absl::OkStatus();
  return base::ErrnoStatus("cannot write to", "standard output");
}

absl::Status PrintJson(const Json& json) {
  return WriteOut(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

absl::StatusOr<CheckpointReader> OpenSave(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string folder, checkpoint::ResolveSave(path));
  return CheckpointReader::Open(folder);
}

const char* EpochText(const checkpoint::RunState& run) {
  return run.epoch_state == checkpoint::EpochState::kFinished ? "finished" : "running";
}

absl::StatusOr<int> List(const Arguments& args) {
  const std::vector<checkpoint::SaveInfo> saves = checkpoint::ListSaves(args.path);
  if (saves.empty()) {
    ASSIGN_OR_RETURN(const std::string folder, checkpoint::ResolveSave(args.path));  // says why there are none
    return absl::NotFoundError(absl::StrCat("no saves under ", folder));
  }
  Json list = Json::array();
  std::string text =
      absl::StrFormat("%-20s %6s %10s %12s %14s  %s\n", "save", "epoch", "step", "rows", "bytes", "state");
  for (const checkpoint::SaveInfo& s : saves) {
    list.push_back(Json{{"name", s.name},
                        {"folder", s.folder},
                        {"complete", s.status.ok()},
                        {"epoch", s.run.epoch},
                        {"epoch_state", EpochText(s.run)},
                        {"step", s.run.step},
                        {"rows", s.rows},
                        {"bytes", s.bytes},
                        {"base", s.base},
                        {"parts", s.parts},
                        {"current", s.current},
                        {"best", s.best},
                        {"earlier_run", s.earlier_run}});
    if (s.run.model.has_value()) list.back()["model"] = checkpoint::ToJson(*s.run.model);
    const std::string marks =
        absl::StrCat(s.base.empty() ? "" : absl::StrCat(", changes since ", s.base),
                     s.parts == 1 ? "" : absl::StrCat(", in ", s.parts, " parts"), s.current ? ", current" : "",
                     s.best ? ", best" : "", s.earlier_run ? ", of an earlier run" : "");
    if (s.status.ok()) {
      absl::StrAppendFormat(&text, "%-20s %6u %10u %12u %14u  complete%s\n", s.name, s.run.epoch, s.run.step, s.rows,
                            s.bytes, marks);
    } else {
      list.back()["damage"] = std::string(s.status.message());
      absl::StrAppendFormat(&text, "%-20s %6s %10s %12s %14s  damaged%s: %s\n", s.name, "-", "-", "-", "-", marks,
                            base::Printable(std::string(s.status.message())));
    }
  }
  if (const auto& model = saves.back().run.model; model.has_value())
    absl::StrAppendFormat(&text, "model: %s (%s), %d sparse slots, %d dense features\n", base::Printable(model->name),
                          base::Printable(model->front_end), model->schema.sparse_slots.size(),
                          model->schema.dense_dim);
  RETURN_IF_ERROR(args.json ? PrintJson(list) : WriteOut(text));
  return 0;
}

// Damage found in one save and in those that it is made of; what cannot even be opened is damage too.
std::vector<std::string> DamageIn(const std::string& folder, Output output) {
  const absl::StatusOr<CheckpointReader> save = CheckpointReader::OpenPart(folder);
  if (!save.ok()) return {std::string(save.status().message())};
  const bool live = output == Output::kText && isatty(STDERR_FILENO);
  uint64_t shown = 0;
  std::vector<std::string> damage;
  for (const absl::Status& status : save->Verify([&](uint64_t done, uint64_t total) {
         const uint64_t percent = total == 0 ? 100 : done * 100 / total;
         if (!live || percent == shown) return;
         shown = percent;
         std::fprintf(stderr, "\r%s: %3" PRIu64 "%%%s", folder.c_str(), percent, percent == 100 ? "\r\033[K" : "");
       }))
    damage.emplace_back(status.message());
  return damage;
}

absl::StatusOr<int> Verify(const Arguments& args) {
  std::vector<std::string> folders;
  if (args.all) {
    for (const checkpoint::SaveInfo& s : checkpoint::ListSaves(args.path)) folders.push_back(s.folder);
  }
  if (folders.empty()) {
    ASSIGN_OR_RETURN(std::string folder, checkpoint::ResolveSave(args.path));
    folders.push_back(std::move(folder));
  }
  Json list = Json::array();
  int exit_code = 0;
  for (const std::string& folder : folders) {
    const std::vector<std::string> damage = DamageIn(folder, args.output());
    if (!damage.empty()) exit_code = 1;
    list.push_back(Json{{"folder", folder}, {"whole", damage.empty()}, {"damage", damage}});
    if (args.json) continue;
    RETURN_IF_ERROR(WriteOut(absl::StrCat(base::Printable(folder), damage.empty() ? ": whole\n" : ": DAMAGED\n")));
    for (const std::string& what : damage) RETURN_IF_ERROR(WriteOut(absl::StrCat("  ", base::Printable(what), "\n")));
  }
  if (args.json) RETURN_IF_ERROR(PrintJson(list));
  return exit_code;
}

absl::StatusOr<int> Dump(const Arguments& args) {
  ASSIGN_OR_RETURN(const CheckpointReader save, OpenSave(args.path));
  RETURN_IF_ERROR(checkpoint::DumpSave(save, args.table, WriteOut));
  return 0;
}

absl::StatusOr<int> Get(const Arguments& args) {
  ASSIGN_OR_RETURN(const CheckpointReader save, OpenSave(args.path));
  if (!args.dense.empty()) {
    RETURN_IF_ERROR(checkpoint::DumpDense(save, args.dense, WriteOut));
    return 0;
  }
  const checkpoint::Manifest& m = save.manifest();
  const checkpoint::SavedSparse* t = m.FindSparse(args.table);
  if (!t) {
    std::vector<std::string> names;
    for (const checkpoint::SavedSparse& s : m.sparse) names.push_back(base::Printable(s.config.name));
    return absl::NotFoundError(absl::StrCat("no table '", args.table, "'; there are: ", absl::StrJoin(names, ", ")));
  }
  ASSIGN_OR_RETURN(const std::vector<float> row, save.FindRow(static_cast<size_t>(t - m.sparse.data()), args.key));
  const size_t weights = static_cast<size_t>(t->pull_width);
  if (args.json) {
    RETURN_IF_ERROR(PrintJson(Json{{"table", args.table},
                                   {"key", args.key},
                                   {"w", std::vector<float>(row.begin(), row.begin() + t->pull_width)},
                                   {"state", std::vector<float>(row.begin() + t->pull_width, row.end())}}));
    return 0;
  }
  std::string text = absl::StrCat(args.table, "\t", args.key);
  checkpoint::AppendRow(row, weights, text);
  RETURN_IF_ERROR(WriteOut(text + "\n"));
  return 0;
}

absl::StatusOr<int> Diff(const Arguments& args) {
  ASSIGN_OR_RETURN(const CheckpointReader a, OpenSave(args.path));
  ASSIGN_OR_RETURN(const CheckpointReader b, OpenSave(args.other));
  ASSIGN_OR_RETURN(const std::vector<checkpoint::TableDifference> differences, checkpoint::CompareSaves(a, b));
  Json list = Json::array();
  std::string text;
  bool same = true;
  for (const checkpoint::TableDifference& d : differences) {
    same &= d.same();
    list.push_back(Json{{"name", d.name},
                        {"same", d.same()},
                        {"schema", d.schema},
                        {"equal", d.equal},
                        {"different", d.different},
                        {"only_a", d.only_a},
                        {"only_b", d.only_b},
                        {"max_abs", d.max_abs},
                        {"first", d.first}});
    if (!d.schema.empty()) {
      absl::StrAppendFormat(&text, "%s: %s\n", base::Printable(d.name), base::Printable(d.schema));
    } else {
      absl::StrAppendFormat(&text, "%s: %u equal, %u different, %u only in A, %u only in B, max |A-B| %.9g%s%s\n",
                            base::Printable(d.name), d.equal, d.different, d.only_a, d.only_b, d.max_abs,
                            d.first.empty() ? "" : "; first: ", absl::StrJoin(d.first, ", "));
    }
  }
  text += same ? "the same\n" : "different\n";
  RETURN_IF_ERROR(args.json ? PrintJson(list) : WriteOut(text));
  return same ? 0 : 1;
}

absl::StatusOr<int> Export(const Arguments& args) {
  ASSIGN_OR_RETURN(const CheckpointReader save, OpenSave(args.path));
  RETURN_IF_ERROR(checkpoint::ExportNpz(save, args.out));
  uint64_t total = 0;
  for (size_t t = 0; t < save.manifest().sparse.size(); ++t) {
    ASSIGN_OR_RETURN(const uint64_t rows, save.CountRows(t));
    total += rows;
  }
  std::fprintf(stderr, "%s: %" PRIu64 " rows of %zu tables written\n", args.out.c_str(), total,
               save.manifest().sparse.size());
  return 0;
}

absl::StatusOr<int> Import(const Arguments& args) {
  ASSIGN_OR_RETURN(const CheckpointReader like, OpenSave(args.like));
  std::vector<std::string> notes;
  RETURN_IF_ERROR(checkpoint::ImportNpz(args.path, like, args.out, notes));
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", base::Printable(note).c_str());
  ASSIGN_OR_RETURN(const CheckpointReader made, CheckpointReader::Open(args.out));
  std::fprintf(stderr, "%s: %" PRIu64 " rows of %zu tables imported\n", args.out.c_str(), made.manifest().TotalRows(),
               made.manifest().sparse.size());
  return 0;
}

using Action = absl::StatusOr<int> (*)(const Arguments&);

void Bind(CLI::App* command, const std::shared_ptr<Arguments>& args, Action action, int& exit_code) {
  command->callback([command, args, action, &exit_code] {
    absl::StatusOr<int> code = action(*args);
    if (code.ok() && std::fflush(stdout) != 0) code = base::ErrnoStatus("cannot write to", "standard output");
    if (!code.ok())
      std::fprintf(stderr, "regatta checkpoint %s: %s\n", command->get_name().c_str(),
                   base::PrintableLines(std::string(code.status().message())).c_str());
    exit_code = code.ok() ? *code : 1;
  });
}

constexpr char kPathHelp[] = "one save (output_model/3), or a folder of saves (output_model), whose newest is taken";

CLI::App* AddSub(CLI::App* parent, const char* name, const char* description, const char* examples,
                 const std::shared_ptr<Arguments>& args) {
  CLI::App* sub = parent->add_subcommand(name, description);
  sub->footer(std::string("Examples:\n") + examples);
  if (std::string(name) != "import") sub->add_option("path", args->path, kPathHelp)->required();
  return sub;
}

void AddListing(CLI::App* checkpoint, const std::shared_ptr<Arguments>& args, int& exit_code) {
  CLI::App* ls = AddSub(checkpoint, "ls", "List the saves of a run: epoch, step, rows, bytes, current and best",
                        "  regatta checkpoint ls output_model\n  regatta checkpoint ls output_model --json", args);
  ls->add_flag("--json", args->json, "print a JSON list");
  Bind(ls, args, &List, exit_code);

  CLI::App* verify = AddSub(checkpoint, "verify", "Read a save whole and check every checksum",
                            "  regatta checkpoint verify output_model/3\n"
                            "  regatta checkpoint verify output_model --all",
                            args);
  verify->add_flag("--all", args->all, "every save below the path, not only the newest");
  verify->add_flag("--json", args->json, "print a JSON list");
  Bind(verify, args, &Verify, exit_code);

  CLI::App* dump = AddSub(checkpoint, "dump", "Print a save as text, a row a line, by table and key",
                          "  regatta checkpoint dump output_model/3 | head\n"
                          "  regatta checkpoint dump output_model --table embedding > embedding.tsv\n"
                          "A line is: table, key, weights, |, optimizer state. Equal models give equal bytes.",
                          args);
  dump->add_option("--table", args->table, "only this table (dense for the dense parameters)");
  Bind(dump, args, &Dump, exit_code);
}

void AddComparing(CLI::App* checkpoint, const std::shared_ptr<Arguments>& args, int& exit_code) {
  CLI::App* get = AddSub(checkpoint, "get", "Print one row, or one dense parameter",
                         "  regatta checkpoint get output_model --table embedding --key 737395\n"
                         "  regatta checkpoint get output_model --dense fc.0.weight",
                         args);
  CLI::Option* dense = get->add_option("--dense", args->dense, "the name of a dense parameter");
  CLI::Option* table = get->add_option("--table", args->table, "the sparse table");
  CLI::Option* key = get->add_option("--key", args->key, "the 64-bit key");
  key->needs(table);
  table->needs(key);
  dense->excludes(table);
  get->add_flag("--json", args->json, "print the row as JSON");
  get->parse_complete_callback([args, table, dense] {
    if (table->count() == 0 && dense->count() == 0) throw CLI::RequiredError("--table and --key, or --dense");
  });
  Bind(get, args, &Get, exit_code);

  CLI::App* diff = AddSub(checkpoint, "diff", "Compare two saves bit by bit; exit 1 where they differ",
                          "  regatta checkpoint diff output_model/3 other_model/3", args);
  diff->add_option("other", args->other, "the save to compare with")->required();
  diff->add_flag("--json", args->json, "print a JSON list");
  Bind(diff, args, &Diff, exit_code);
}

void AddMoving(CLI::App* checkpoint, const std::shared_ptr<Arguments>& args, int& exit_code) {
  CLI::App* exporting = AddSub(checkpoint, "export", "Write a save as a NumPy .npz file",
                               "  regatta checkpoint export output_model weights.npz\n"
                               "  python3 -c \"import numpy; print(numpy.load('weights.npz').files)\"\n"
                               "Arrays: <table>.keys, <table>.w, <table>.state, dense.<parameter>,\n"
                               "dense.<parameter>.state<i>, updates.",
                               args);
  exporting->add_option("out", args->out, "the .npz file to write")->required();
  Bind(exporting, args, &Export, exit_code);

  CLI::App* importing = AddSub(checkpoint, "import", "Make a save out of a NumPy .npz file",
                               "  regatta checkpoint import weights.npz --like output_model --out start\n"
                               "  regatta train -m config.yaml -o runner.model_init_path=start\n"
                               "Weights must be in the file; missing optimizer state begins anew, with a note.",
                               args);
  importing->add_option("npz", args->path, "the file, as numpy.savez or savez_compressed wrote it")->required();
  importing->add_option("--like", args->like, "a save whose tables and parameters the new one gets")->required();
  importing->add_option("--out", args->out, "the folder of the new save")->required();
  Bind(importing, args, &Import, exit_code);
}

}  // namespace

void AddCheckpointCommand(CLI::App& app, int& exit_code) {
  CLI::App* checkpoint = app.add_subcommand("checkpoint", "Look into saved models; move weights in and out");
  checkpoint->require_subcommand(1);
  checkpoint->footer(
      "Examples:\n"
      "  regatta checkpoint ls output_model            the saves of a run\n"
      "  regatta checkpoint verify output_model        is the newest one whole?\n"
      "  regatta checkpoint diff output_model/0 output_model/1\n"
      "  regatta checkpoint export output_model weights.npz\n"
      "Exit codes: 0 done, 1 damaged, different or failed, 2 a wrong command line.");
  const auto args = std::make_shared<Arguments>();
  AddListing(checkpoint, args, exit_code);
  AddComparing(checkpoint, args, exit_code);
  AddMoving(checkpoint, args, exit_code);
}

}  // namespace regatta::cli
