#include "cli/worker_command.h"

#include <algorithm>

#include "cli/sibling.h"
#include "cluster/pserver_args.h"
#include "runner/train_args.h"

namespace regatta::cli {
namespace {

constexpr std::string_view kWorkerVerbs[] = {"train", "infer", "config"};
constexpr char kWorker[] = "regatta-train";
constexpr char kServer[] = "regatta-pserver";

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The words as the worker would parse them: a server started with a misspelt flag must not wait for workers that all
// refused it.
absl::StatusOr<runner::TrainArgs> ParseWords(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const runner::Verb verb, runner::ParseVerb(words.front()));
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return runner::ParseTrainArgs(verb, static_cast<int>(argv.size()), argv.data());
}

}  // namespace

bool IsWorkerVerb(std::string_view verb) {
  return std::find(std::begin(kWorkerVerbs), std::end(kWorkerVerbs), verb) != std::end(kWorkerVerbs);
}

absl::StatusOr<Sibling> ChooseSibling(const std::vector<std::string>& words, const cluster::Getenv& getenv) {
  Sibling worker{kWorker, words};
  // Reading about a command or a configuration is no part of a job.
  if (words.front() == "config" || Has(words, "--help") || Has(words, "-h") || Has(words, "--dry-run")) return worker;
  const bool insecure = Has(words, "--insecure");
  ASSIGN_OR_RETURN(
      const cluster::ClusterSpec spec,
      cluster::ReadEnvironment(getenv, insecure ? cluster::Network::kTrusted : cluster::Network::kLoopbackOnly));
  RETURN_IF_ERROR(cluster::CheckAvailable(spec));
  if (spec.role != cluster::Role::kServer) return worker;
  RETURN_IF_ERROR(ParseWords(words).status());
  Sibling server{kServer, {cluster::kRoleFromEnvironment}};
  if (insecure) server.words.push_back("--insecure");
  server.words.push_back("--");
  server.words.insert(server.words.end(), words.begin(), words.end());
  return server;
}

absl::Status ExecWorkerVerb(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const Sibling sibling, ChooseSibling(words, cluster::ProcessEnvironment()));
  return ExecSibling(sibling.program, sibling.words,
                     sibling.program == kWorker ? "build with -DREGATTA_WITH_TORCH=ON, or install it beside regatta"
                                                : "build it, or install it beside regatta");
}

absl::Status ExecPserver(const std::vector<std::string>& words) {
  return ExecSibling(kServer, words, "build it, or install it beside regatta");
}

}  // namespace regatta::cli
