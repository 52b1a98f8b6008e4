#include "cli/launch_command.h"

#include "launch/launcher.h"
#include "runner/run_config.h"
#include "runner/runner_section.h"
#include "runner/train_args.h"

namespace regatta::cli {
namespace {

using launch::WorkerLoss;

absl::StatusOr<runner::RunnerOptions> OptionsOf(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  ASSIGN_OR_RETURN(const runner::TrainArgs args,
                   runner::ParseTrainArgs(runner::Verb::kTrain, static_cast<int>(argv.size()), argv.data()));
  ASSIGN_OR_RETURN(base::Config config, runner::LoadConfig(args.config, args.overrides));
  runner::Remarks remarks;  // the worker's to say
  return runner::ParseRunnerOptions(config, runner::Company::kServers, remarks);
}

WorkerLoss WorkerLossOf(const std::vector<std::string>& words) {
  const absl::StatusOr<runner::RunnerOptions> options = OptionsOf(words);
  if (!options.ok()) return {};
  if (options->on_worker_loss == runner::OnWorkerLoss::kShrink)
    return {WorkerLoss::Way::kGoOn, "runner.on_worker_loss: shrink"};
  if (options->on_worker_loss == runner::OnWorkerLoss::kFail)
    return {WorkerLoss::Way::kEnd, "runner.on_worker_loss: fail"};
  if (options->ack == runner::Ack::kMemory && options->on_worker_loss == runner::OnWorkerLoss::kAuto)
    return {WorkerLoss::Way::kEnd, "with runner.ack: memory workers do not come back"};
  return {};
}

}  // namespace

int RunLaunch(launch::Flavour flavour, int argc, const char* const* argv) {
  return launch::Launch(flavour, argc, argv, WorkerLossOf);
}

}  // namespace regatta::cli
