// The command `regatta`: torch-free, so that it starts in milliseconds.
// One executable under three names: `paddle` (pserver, version, train) and `fleetrun` (launch) are links to it.
// Exit codes: 0 done; 1 data, disk, checkpoint; 2 arguments, configuration, environment.
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded_run.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/standard_output.h"
#include "cli/checkpoint_command.h"
#include "cli/data_command.h"
#include "cli/launch_command.h"
#include "cli/version_command.h"
#include "cli/worker_command.h"
#include "settings/key_table.h"

namespace {

constexpr int kWrongUsage = 2;

constexpr char kFooter[] =
    "First steps:\n"
    "  scripts/demo                                     generate data, train, infer\n"
    "  regatta train -m models/rank/dnn/config.yaml     train what a YAML describes\n"
    "  regatta train -m c.yaml -o runner.epochs=2       change a key of it\n"
    "  regatta infer -m models/rank/dnn/config.yaml     measure the saved epochs\n"
    "  regatta launch --server_num=2 --worker_num=2 -- train -m c.yaml     a job of four processes\n"
    "  regatta status --servers=127.0.0.1:36200         how a running job does\n"
    "  regatta config -m c.yaml                         every value and where it comes from\n"
    "regatta COMMAND --help explains a command; docs/keys.md lists every key.";

int Fail(std::string_view message) {
  std::cerr << "regatta: " << regatta::base::PrintableLines(message) << "\n";
  return kWrongUsage;
}

// The commands that are parsed elsewhere: here for `regatta --help` only.
void AddForeignVerbs(CLI::App& app) {
  app.add_subcommand("train", "train the model that a YAML describes");
  app.add_subcommand("infer", "measure saved epochs on test data");
  app.add_subcommand("config", "print the effective configuration (--keys: the reference of all keys)");
  app.add_subcommand("launch", "start the servers and workers of a job and watch over them");
  app.add_subcommand("pserver", "be a parameter server and wait for workers");
  app.add_subcommand("status", "ask the servers of a running job how it does");
  app.add_subcommand("credentials", "make certificates and tokens for a job on several machines");
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// `parent` is what stands before the word: "" or "data ".
int UnknownCommand(const std::string& parent, const std::string& word, const std::vector<std::string>& names) {
  const std::string nearest = regatta::base::NearestName(word, names);
  std::string message = "unknown command '" + parent + word + "'";
  message += nearest.empty() ? "; regatta " + parent + "--help lists the commands" : "; did you mean " + nearest + "?";
  return Fail(message);
}

bool IsWrongWord(const std::string& word, const std::vector<std::string>& names) {
  return !word.starts_with("-") && std::find(names.begin(), names.end(), word) == names.end();
}

constexpr char kPaddleHelp[] =
    "paddle is regatta under the name that older scripts use:\n"
    "  paddle pserver --port=7164 --ports_num=1 --ports_num_for_sparse=1 --num_gradient_servers=1\n"
    "  paddle version\n"
    "  paddle train -m config.yaml\n"
    "regatta --help shows everything else.\n";

int Run(int argc, char** argv) {
  int exit_code = 0;
  CLI::App app{"Regatta trains recommendation models with embedding tables of any size.", "regatta"};
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", regatta::cli::VersionText());
  AddForeignVerbs(app);
  regatta::cli::AddDataCommand(app, exit_code);
  regatta::cli::AddCheckpointCommand(app, exit_code);
  app.add_subcommand("version", "what this build is")->callback([] { std::cout << regatta::cli::VersionText(); });
  if (argc < 2) {
    std::cout << app.help();
    return 0;
  }
  const std::string word = argv[1];
  if (IsWrongWord(word, CommandNames(app))) return UnknownCommand("", word, CommandNames(app));
  if (argc > 2 && !word.starts_with("-")) {
    const std::vector<std::string> inner = CommandNames(*app.get_subcommand(word));
    if (!inner.empty() && IsWrongWord(argv[2], inner)) return UnknownCommand(word + " ", argv[2], inner);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  return exit_code;
}

// Verbs that take all the words behind them and need no CLI11 here.
int RunVerb(std::string_view verb, int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (verb == "launch") return regatta::cli::RunLaunch(regatta::launch::Flavour::kLaunch, argc - 1, argv + 1);
  if (verb == "pserver") {
    const absl::Status status = regatta::cli::ExecPserver({words.begin() + 1, words.end()});
    return Fail(std::string(status.message()));
  }
  if (verb == "status") {
    const absl::Status status = regatta::cli::ExecStatus({words.begin() + 1, words.end()});
    return Fail(std::string(status.message()));
  }
  if (verb == "credentials") {
    const absl::Status status = regatta::cli::ExecCredentials({words.begin() + 1, words.end()});
    return Fail(std::string(status.message()));
  }
  if (regatta::cli::IsWorkerVerb(verb)) {
    const absl::Status status = regatta::cli::ExecWorkerVerb(words);
    return Fail(std::string(status.message()));
  }
  return Run(argc, argv);
}

bool IsPaddleVerb(std::string_view verb) { return verb == "pserver" || verb == "version" || verb == "train"; }

// `paddle` with a word that it never had.
int ShowPaddle(std::string_view verb) {
  const bool asked = verb.empty() || verb == "--help" || verb == "-h";
  if (!asked) std::cerr << "paddle: unknown command '" << verb << "'\n";
  (asked ? std::cout : std::cerr) << kPaddleHelp;
  return asked ? 0 : kWrongUsage;
}

int Main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  const std::string_view path = argc > 0 ? argv[0] : "regatta", name = path.substr(path.rfind('/') + 1);
  if (name == "fleetrun") return regatta::cli::RunLaunch(regatta::launch::Flavour::kFleetrun, argc, argv);
  if (name == "paddle" && !IsPaddleVerb(verb)) return ShowPaddle(verb);
  if (verb == "config" && std::find(argv + 2, argv + argc, std::string_view("--keys")) != argv + argc) {
    std::cout << regatta::settings::KeysMarkdown();
    return 0;
  }
  return argc < 2 ? Run(argc, argv) : RunVerb(verb, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  regatta::base::OpenStandardDescriptors();
  FLAGS_logtostderr = true;
  FLAGS_log_year_in_prefix = false;  // as the trainer does
  google::InitGoogleLogging("regatta");
  return regatta::base::RunGuarded(&Main, argc, argv);
}
