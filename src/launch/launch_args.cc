#include "launch/launch_args.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "base/command_line.h"

namespace regatta::launch {
namespace {

constexpr int kMaxProcesses = 1024;

constexpr char kLaunchFooter[] =
    "COMMAND is `train` of regatta with its arguments, a config.yaml (trained), a script.py (run by python3),\n"
    "or any program. Every process gets the same words; the PADDLE_* variables\n"
    "tell it its role.\n"
    "Examples:\n"
    "  regatta launch --server_num=2 --worker_num=2 -- train -m models/rank/dnn/config.yaml\n"
    "  regatta launch --server_num=1 --worker_num=4 --log_dir=log4 -- train -m c.yaml -o runner.sync_mode=sync\n"
    "  regatta launch --servers=10.0.0.1:36200,10.0.0.2:36200 --workers=10.0.0.1:36100,10.0.0.2:36100 \\\n"
    "      -- train -m c.yaml                  on every node; each starts the processes at its own address;\n"
    "                                          with REGATTA_TOKEN_FILE and REGATTA_TLS_*: regatta credentials --help\n"
    "Logs: log/serverlog.N and log/workerlog.N; worker 0 is shown here too. Ctrl+C lets every process save\n"
    "and end; once more kills them at once.\n"
    "Exit codes: 0 every process ended well; 2 wrong usage; 130, 143 stopped by Ctrl+C or SIGTERM; else the\n"
    "code of the process that failed first (128+N: killed by signal N). docs/launching.md tells more.";

constexpr char kFleetrunFooter[] =
    "SCRIPT is run by python3, a config.yaml is trained, any other program is run as it is.\n"
    "Examples:\n"
    "  fleetrun --worker_num=1 --server_num=1 tools/static_ps_trainer.py -m models/rank/dnn/config.yaml\n"
    "  fleetrun --workers=10.0.0.1:36100,10.0.0.2:36100 --servers=10.0.0.1:36200,10.0.0.2:36200 \\\n"
    "      --insecure train.py                 on every node; each starts the processes at its own address\n"
    "fleetrun is regatta launch under another name; regatta launch --help tells more.";

struct Name {
  const char* program;
  const char* usage;
  const char* about;
  const char* footer;
};

Name NameOf(Flavour flavour) {
  if (flavour == Flavour::kFleetrun)
    return {"fleetrun", "[OPTIONS] SCRIPT [ARGUMENTS]", "Start servers and workers of one job and watch over them.",
            kFleetrunFooter};
  return {"regatta launch", "[OPTIONS] -- COMMAND [ARGUMENTS]",
          "Start servers and workers of one job and watch over them.", kLaunchFooter};
}

// Flags of launchers that do not exist yet: refused, never ignored.
struct Later {
  std::string_view flag;
  const char* what;
};
constexpr Later kLater[] = {
    {"--hosts", "launching over ssh"},
    {"--hostfile", "launching over ssh"},
    {"--job_dispatch_package", "launching over ssh"},
    {"--job_workspace", "launching over ssh"},
    {"--collective", "collective training"},
    {"--ips", "collective training"},
    {"--nproc_per_node", "collective training"},
    {"--gpus", "training on GPUs"},
    {"--devices", "training on GPUs"},
};
constexpr std::string_view kFlags[] = {"--insecure", "--help", "-h", "--collective"};  // take no value

std::string_view FlagOf(std::string_view word) { return word.substr(0, word.find('=')); }

bool TakesNoValue(std::string_view word) {
  return word.find('=') != std::string_view::npos ||
         std::find(std::begin(kFlags), std::end(kFlags), word) != std::end(kFlags);
}

// Where the command begins: behind --, or at the first word that is neither a flag nor its value.
int CommandStart(int argc, const char* const* argv, bool& dashes) {
  dashes = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") {
      dashes = true;
      return i;
    }
    if (!word.starts_with("-")) return i;
    if (!TakesNoValue(word)) ++i;
  }
  return argc;
}

absl::Status CheckLater(const Name& name, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = FlagOf(argv[i]);
    for (const Later& later : kLater) {
      if (flag != later.flag) continue;
      return absl::UnimplementedError(absl::StrCat(name.program, ": ", base::View(flag), ": ", later.what,
                                                   " is not available yet; use --server_num and --worker_num, or "
                                                   "--servers and --workers"));
    }
  }
  return absl::OkStatus();
}

struct Texts {
  std::string servers, workers;
  bool insecure = false;
};

void AddOptions(CLI::App& app, LaunchArgs& args, Texts& texts) {
  app.add_option("--server_num", args.server_num, "servers to start on this machine")
      ->check(CLI::Range(1, kMaxProcesses))
      ->type_name("N");
  app.add_option("--worker_num", args.worker_num, "workers to start on this machine")
      ->check(CLI::Range(1, kMaxProcesses))
      ->type_name("N");
  app.add_option("--servers", texts.servers, "servers of the job; this node starts those with its own address")
      ->type_name("IP:PORT,...");
  app.add_option("--workers", texts.workers, "workers of the job; POD_IP, where set, is this node's own address")
      ->type_name("IP:PORT,...");
  app.add_option("--log_dir", args.log_dir, "where serverlog.N and workerlog.N are written")
      ->capture_default_str()
      ->type_name("DIR");
  app.add_option("--grace", args.grace, "seconds that a process gets to save and end before it is killed")
      ->check(CLI::Range(0.0, 86'400.0))
      ->check(base::NotNan)
      ->capture_default_str()
      ->type_name("SECONDS");
  app.add_option("--max_restarts", args.max_restarts,
                 "how often processes that are killed are started again: servers go on with what they have logged, "
                 "workers of `train` at the data that the servers have not seen")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--data_dir", args.data_dir,
                 "server N logs what it acknowledges in DIR/server.N, on a disk of its machine; with --max_restarts "
                 "LOG_DIR/data where it is not given, which is emptied at the start")
      ->type_name("DIR");
  app.add_option("--metrics_port", args.metrics_port,
                 "serve Prometheus text on 127.0.0.1: server 0 on port N, the others on N+1 and so on, servers before "
                 "workers; 0: each on a free one, which its log names")
      ->check(CLI::Range(0, 65'535))
      ->type_name("N");
  app.add_flag("--insecure", texts.insecure,
               "without credentials: allow addresses outside this machine, the network is trusted");
  cluster::AddCredentialOptions(app, args.access.files);
}

absl::Status TakeList(const Name& name, const char* flag, const std::string& text, const char* count_flag, int& count,
                      std::vector<cluster::Endpoint>& list) {
  absl::StatusOr<std::vector<cluster::Endpoint>> parsed = cluster::ParseEndpoints(text);
  if (!parsed.ok()) return base::Annotate(parsed.status(), absl::StrCat(name.program, ": ", flag));
  list = *std::move(parsed);
  const int size = static_cast<int>(list.size());
  if (count != 0 && count != size) {
    return absl::InvalidArgumentError(absl::StrCat(name.program, ": ", count_flag, "=", count, " and ", flag, "=", text,
                                                   " disagree; the list alone is enough"));
  }
  count = size;
  return absl::OkStatus();
}

absl::Status TakePlaces(const Name& name, const Texts& texts, LaunchArgs& args) {
  if (texts.insecure) args.access.network = cluster::Network::kTrusted;
  if (texts.servers.empty() != texts.workers.empty()) {
    const char* missing = texts.servers.empty() ? "--servers" : "--workers";
    return absl::InvalidArgumentError(absl::StrCat(name.program, ": ", missing,
                                                   " is missing: lists come in pairs, --servers=ip:port,… and "
                                                   "--workers=ip:port,…, the same on every node"));
  }
  if (!texts.servers.empty()) {
    RETURN_IF_ERROR(TakeList(name, "--servers", texts.servers, "--server_num", args.server_num, args.servers));
    return TakeList(name, "--workers", texts.workers, "--worker_num", args.worker_num, args.workers);
  }
  if (args.server_num > 0 && args.worker_num > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name.program,
                   ": say how many servers and workers: --server_num=N --worker_num=N, or by lists, "
                   "--servers=ip:port,… --workers=ip:port,… (collective training is not available yet)"));
}

}  // namespace

bool LaunchArgs::workers_return() const {
  return max_restarts > 0 && !data_dir.empty() && worker_loss.policy == base::LossPolicy::kAwait;
}

absl::StatusOr<LaunchArgs> ParseLaunchArgs(Flavour flavour, int argc, const char* const* argv) {
  const Name name = NameOf(flavour);
  LaunchArgs args;
  Texts texts;
  bool dashes = false;
  const int start = CommandStart(argc, argv, dashes);
  args.command.assign(argv + start + (dashes ? 1 : 0), argv + argc);
  RETURN_IF_ERROR(CheckLater(name, start, argv));
  CLI::App app{name.about, name.program};
  app.footer(name.footer);
  app.allow_extras();
  AddOptions(app, args, texts);
  ASSIGN_OR_RETURN(const std::string help, base::ParseWords(app, start, argv));
  if (!help.empty()) {
    args.help = absl::StrReplaceAll(help, {{"[OPTIONS]", name.usage}});
    return args;
  }
  RETURN_IF_ERROR(base::CheckNothingRemains(app));
  RETURN_IF_ERROR(TakePlaces(name, texts, args));
  if (args.command.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name.program, ": nothing to run; end with ",
                     flavour == Flavour::kFleetrun ? "a script and its arguments" : "-- train -m config.yaml"));
  }
  return args;
}

}  // namespace regatta::launch
