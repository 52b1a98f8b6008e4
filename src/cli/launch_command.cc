#include "cli/launch_command.h"

#include "launch/launcher.h"
#include "settings/run_config.h"
#include "settings/runner_section.h"
#include "settings/train_args.h"

namespace regatta::cli {
namespace {

using launch::WorkerLoss;

absl::StatusOr<settings::RunnerOptions> OptionsOf(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  ASSIGN_OR_RETURN(const settings::TrainArgs args,
                   settings::ParseTrainArgs(settings::Verb::kTrain, static_cast<int>(argv.size()), argv.data()));
  ASSIGN_OR_RETURN(base::Config config, settings::LoadConfig(args.config, args.overrides));
  settings::Remarks remarks;  // the worker's to say
  return settings::ParseRunnerOptions(config, settings::Deployment::kWithServers, remarks);
}

WorkerLoss WorkerLossOf(const std::vector<std::string>& words) {
  const absl::StatusOr<settings::RunnerOptions> options = OptionsOf(words);
  if (!options.ok()) return {};
  if (options->on_worker_loss == base::LossPolicy::kShrink)
    return {base::LossPolicy::kShrink, "runner.on_worker_loss: shrink"};
  if (options->on_worker_loss == base::LossPolicy::kFail)
    return {base::LossPolicy::kFail, "runner.on_worker_loss: fail"};
  if (options->ack == base::Ack::kMemory && !options->on_worker_loss.has_value())
    return {base::LossPolicy::kFail, "with runner.ack: memory workers do not come back"};
  return {};
}

}  // namespace

int RunLaunch(launch::Flavour flavour, int argc, const char* const* argv) {
  return launch::Launch(flavour, argc, argv, WorkerLossOf);
}

}  // namespace regatta::cli
