#include "cli/worker_command.h"

#include <signal.h>

#include <algorithm>
#include <optional>

#include "cli/sibling.h"
#include "cluster/credentials_args.h"
#include "cluster/pserver_args.h"
#include "cluster/status_args.h"
#include "settings/run_config.h"
#include "settings/security.h"
#include "settings/train_args.h"

namespace regatta::cli {
namespace {

constexpr std::string_view kWorkerVerbs[] = {"train", "infer", "config"};
constexpr char kWorker[] = "regatta-train";
constexpr char kServer[] = "regatta-pserver";
constexpr char kWorkerHint[] =
    "it trains and infers what a YAML describes and needs libtorch (Debian's libtorch-dev), which Python's wheel "
    "leaves out: build Regatta from its sources with -DREGATTA_WITH_TORCH=ON, which is the default, or install "
    "regatta-train beside regatta";

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// What of the words concerns a server.
struct ServerWords {
  cluster::Access access;  // by flags and runner.security
  std::optional<int> metrics_port;
};

// The words and the configuration are parsed as the worker will parse them: it takes most of a second to load, and a
// server must not wait for workers that all refuse what it was started with. Only a model knows whether its keys of
// hyper_parameters are right.
absl::StatusOr<ServerWords> ParseWords(const std::vector<std::string>& words, cluster::Role role) {
  ASSIGN_OR_RETURN(const settings::Verb verb, settings::ParseVerb(words.front()));
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  ASSIGN_OR_RETURN(const settings::TrainArgs args,
                   settings::ParseTrainArgs(verb, static_cast<int>(argv.size()), argv.data()));
  ASSIGN_OR_RETURN(base::Config config, settings::LoadConfig(args.config, args.overrides));
  ASSIGN_OR_RETURN(cluster::Access access, settings::ReadSecurity(config, args));
  settings::Remarks remarks;  // the worker's to say
  const bool alone = role == cluster::Role::kLocal;
  ASSIGN_OR_RETURN(
      const settings::RunConfig run,
      settings::ParseRunConfig(config, alone ? settings::Deployment::kStandalone : settings::Deployment::kWithServers,
                               remarks));
  if (role == cluster::Role::kServer) {
    RETURN_IF_ERROR(settings::CheckNoUnknownButOfModels(config));
    RETURN_IF_ERROR(settings::CheckDataIsNamed(run.runner, args));
  }
  return ServerWords{std::move(access), args.metrics_port};
}

// The worker takes a while to load and could not say a word until then; it lets them through (worker/stop_signal.h).
void HoldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, number);
  sigprocmask(SIG_BLOCK, &held, nullptr);
}

}  // namespace

bool IsWorkerVerb(std::string_view verb) {
  return std::find(std::begin(kWorkerVerbs), std::end(kWorkerVerbs), verb) != std::end(kWorkerVerbs);
}

absl::StatusOr<Sibling> ChooseSibling(const std::vector<std::string>& words, const cluster::Getenv& getenv) {
  Sibling worker{kWorker, words};
  if (Has(words, "--help") || Has(words, "-h")) return worker;
  // Only training has a place in a job, and asking about it has none.
  cluster::ClusterSpec spec;
  if (words.front() == "train" && !Has(words, "--dry-run")) {
    ASSIGN_OR_RETURN(spec, cluster::ReadPlace(getenv));
    RETURN_IF_ERROR(cluster::CheckAvailable(spec));
  }
  ASSIGN_OR_RETURN(const ServerWords said, ParseWords(words, spec.role));
  if (spec.role == cluster::Role::kLocal) return worker;
  RETURN_IF_ERROR(cluster::ReadEnvironment(getenv, said.access).status());
  if (spec.role != cluster::Role::kServer) return worker;
  Sibling server{kServer, {cluster::kRoleFromEnvironment}};
  if (said.access.network == cluster::Network::kTrusted) server.words.push_back("--insecure");
  for (const std::string& flag : cluster::CredentialFlags(said.access.files)) server.words.push_back(flag);
  if (said.metrics_port.has_value()) server.words.push_back(absl::StrCat("--metrics_port=", *said.metrics_port));
  server.words.push_back("--");
  server.words.insert(server.words.end(), words.begin(), words.end());
  return server;
}

absl::Status ExecWorkerVerb(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const Sibling sibling, ChooseSibling(words, cluster::ProcessEnvironment()));
  if (sibling.program == kWorker) HoldSignals();
  return ExecSibling(sibling.program, sibling.words,
                     sibling.program == kWorker ? kWorkerHint : "build it, or install it beside regatta");
}

absl::Status ExecPserver(const std::vector<std::string>& words) {
  return ExecSibling(kServer, words, "build it, or install it beside regatta");
}

absl::Status ExecStatus(std::vector<std::string> words) {
  words.insert(words.begin(), cluster::kStatusMode);
  return ExecPserver(words);
}

absl::Status ExecCredentials(std::vector<std::string> words) {
  words.insert(words.begin(), cluster::kCredentialsMode);
  return ExecPserver(words);
}

}  // namespace regatta::cli
