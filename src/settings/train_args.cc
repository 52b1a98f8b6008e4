#include "settings/train_args.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/command_line.h"
#include "base/nearest.h"

namespace regatta::settings {
namespace {

struct VerbText {
  Verb verb;
  const char* name;
  const char* about;
  const char* footer;
};
constexpr VerbText kVerbs[] = {
    {Verb::kTrain, "train", "Train the model that a YAML describes.",
     "Examples:\n"
     "  regatta train -m models/rank/dnn/config.yaml\n"
     "  regatta train -m config.yaml -o runner.epochs=2 -o hyper_parameters.fc_sizes=[64,32]\n"
     "  regatta train -m config.yaml --resume       go on after a stop, a kill or a power loss\n"
     "  regatta train -m config.yaml --dry-run      show the configuration, the first batch and the tables\n"
     "Every epoch is saved to runner.model_save_path/<epoch>. docs/keys.md lists every key."},
    {Verb::kInfer, "infer", "Measure saved epochs on runner.test_data_dir.",
     "Examples:\n"
     "  regatta infer -m models/rank/dnn/config.yaml\n"
     "  regatta infer -m config.yaml -o runner.infer_start_epoch=2 -o runner.infer_end_epoch=3 --predictions p.txt\n"
     "  regatta infer -m config.yaml -o runner.test_data_dir=new --predictions p.txt --no_labels   score data without "
     "labels"},
    {Verb::kConfig, "config", "Print the effective configuration and where each value comes from.",
     "Examples:\n"
     "  regatta config -m models/rank/dnn/config.yaml\n"
     "  regatta config -m config.yaml -o runner.epochs=2 --json\n"
     "  regatta config --keys                       the reference of every key, as Markdown"},
};

const VerbText& TextOf(Verb verb) {
  for (const VerbText& text : kVerbs)
    if (text.verb == verb) return text;
  return kVerbs[0];
}

// `text` as one word of a POSIX shell.
std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain = "@%_+=:,./-";
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return absl::ascii_isalnum(c) || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

void AddOptions(CLI::App& app, Verb verb, TrainArgs& args, std::string& is_cloud) {
  app.add_option("-m,--config_yaml", args.config, "the configuration")->type_name("FILE");
  app.add_option("-o,--opt", args.overrides, "set a key; the value is YAML; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all();
  app.add_flag("--json", args.json,
               verb == Verb::kConfig ? "print the configuration as JSON" : "print one JSON object a report");
  app.add_option("--is_cloud", is_cloud, "accepted and ignored, for scripts that pass it")
      ->expected(0, 1)
      ->type_name("");
  if (verb == Verb::kConfig) {
    app.add_flag("--keys", args.keys, "print the reference of every key instead, as Markdown; needs no FILE");
    return;
  }
  app.add_option("--trace", args.trace, "write a trace for chrome://tracing or Perfetto")->type_name("FILE");
  app.add_flag("--dry-run", args.dry_run, "show the configuration, the first batch and the tables; train nothing");
  if (verb == Verb::kInfer) {
    CLI::Option* predictions =
        app.add_option("--predictions", args.predictions, "write a line for each sample: predictions, then labels")
            ->type_name("FILE");
    app.add_flag("--no_labels", args.no_labels, "the data needs no labels: predictions and speed, no metrics")
        ->needs(predictions);
    return;
  }
  app.add_flag("--insecure", args.insecure,
               "without credentials: allow servers outside this machine, the network is trusted");
  cluster::AddCredentialOptions(app, args.credentials);
  app.add_option("--metrics_port", args.metrics_port,
                 "serve Prometheus text at http://127.0.0.1:N/metrics; 0: any free port, which the log names")
      ->check(CLI::Range(0, 65'535))
      ->type_name("N");
  CLI::Option* resume = app.add_flag("--resume", args.resume, "continue the newest complete save of model_save_path");
  app.add_flag("--overwrite", args.overwrite, "replace the interrupted run that model_save_path holds")
      ->excludes(resume);
}

}  // namespace

absl::StatusOr<Verb> ParseVerb(const std::string& name) {
  std::vector<std::string> names;
  for (const VerbText& text : kVerbs) {
    if (name == text.name) return text.verb;
    names.emplace_back(text.name);
  }
  const std::string nearest = base::NearestName(name, names);
  return absl::InvalidArgumentError(absl::StrCat("unknown command '", name, "': want train, infer or config",
                                                 nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

std::string ResumeCommand(const TrainArgs& args) {
  std::string command = absl::StrCat("regatta train -m ", ShellWord(args.config));
  for (const std::string& assignment : args.overrides) absl::StrAppend(&command, " -o ", ShellWord(assignment));
  if (args.insecure) command += " --insecure";
  for (const cluster::CredentialName& name : cluster::kCredentialNames)
    if (const std::string& path = args.credentials.*name.file; !path.empty())
      absl::StrAppend(&command, " ", name.flag, "=", ShellWord(path));
  if (args.metrics_port.has_value()) absl::StrAppend(&command, " --metrics_port=", *args.metrics_port);
  return command + " --resume";
}

absl::StatusOr<TrainArgs> ParseTrainArgs(Verb verb, int argc, const char* const* argv) {
  const VerbText& text = TextOf(verb);
  TrainArgs args;
  args.verb = verb;
  std::string is_cloud;
  CLI::App app{text.about, absl::StrCat("regatta ", text.name)};
  app.footer(text.footer);
  app.allow_extras();
  AddOptions(app, verb, args, is_cloud);
  ASSIGN_OR_RETURN(args.help, base::ParseWords(app, argc, argv));
  if (!args.help.empty()) return args;
  RETURN_IF_ERROR(base::CheckNothingRemains(app));
  if (args.config.empty() && !args.keys) {
    return absl::InvalidArgumentError(absl::StrCat("regatta ", text.name, ": no configuration; try: regatta ",
                                                   text.name, " -m models/rank/dnn/config.yaml"));
  }
  return args;
}

}  // namespace regatta::settings
