#include "worker/train_run.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/run_record.h"
#include "fleet/worker_node.h"
#include "model/torch_net.h"
#include "worker/batch_text.h"
#include "worker/stop_signal.h"

namespace regatta::worker {

namespace rounds = run::rounds;

TrainRun::TrainRun(Job& job, TrainData data, train::Reporter& reporter)
    : job_(job),
      reporter_(reporter),
      team_(job.fleet->team()),
      memory_(job),
      bad_gradients_(job.run.runner.nan_policy),
      data_(std::move(data.train)),
      validation_(std::move(data.validation)),
      session_(team_),
      stop_(team_, Limits()) {
  if (job.metrics != nullptr) job.metrics->Show(data_.dataset.get());
  if (!job.alone()) progress_ = std::make_unique<JobProgress>(*job.fleet->worker());
}

TrainRun::~TrainRun() {
  if (job_.metrics != nullptr) job_.metrics->Show(static_cast<const data::Dataset*>(nullptr));
}

absl::StatusOr<run::RunEnd> TrainRun::Run() {
  RETURN_IF_ERROR(run::AllOk(team_, rounds::Open(), OpenRoot()));
  RETURN_IF_ERROR(run::AllOk(team_, rounds::Start(), Start()));
  if (job_.alone()) memory_.LogEstimate();
  return loop_->Run();
}

// A worker that takes the place of the one that opened it goes on with that one's run.
checkpoint::OpenMode TrainRun::RootMode() const {
  if (const client::ResumePoint* const resume_point = team_.resume_point(); resume_point != nullptr) {
    const auto run = checkpoint::ReadRunRecord(job_.run.runner.model_save_path);
    if (team_.Completed(rounds::Open()) || (run.ok() && resume_point->predecessor == fleet::WhereIs(run->pid)))
      return checkpoint::OpenMode::kResume;
  }
  return job_.args.resume      ? checkpoint::OpenMode::kResume
         : job_.args.overwrite ? checkpoint::OpenMode::kOverwrite
                               : checkpoint::OpenMode::kFresh;
}

absl::Status TrainRun::OpenRoot() {
  if (!team_.chief()) return absl::OkStatus();
  checkpoint::SaveRootOptions options;
  options.path = job_.run.runner.model_save_path;
  options.mode = RootMode();
  std::string text;
  for (const base::ConfigUse& use : job_.config.Effective()) {
    if (use.effect == base::ConfigUse::Effect::kNone) continue;
    options.config[use.path] = use.json;
    absl::StrAppend(&text, use.path, "=", use.json, "\n");
  }
  options.config_hash = base::HashBytes(text);
  options.model = job_.identity();
  options.keep_epochs = static_cast<uint64_t>(job_.run.runner.keep_epochs);
  ASSIGN_OR_RETURN(root_, checkpoint::SaveRoot::Open(options));
  return absl::OkStatus();
}

run::StopLimits TrainRun::Limits() const {
  run::StopLimits limits{.signal = &StopSignal::Requested, .max_minutes = job_.run.runner.max_minutes};
  if (memory_.set()) limits.check_memory = [this] { return memory_.Check(); };
  return limits;
}

run::RunOrigin TrainRun::Origin() const {
  const settings::RunnerOptions& runner = job_.run.runner;
  run::RunOrigin origin;
  origin.resume = job_.args.resume;
  origin.warm_start = runner.model_init_path;
  if (!origin.warm_start.empty() && runner.last_epoch >= 0) absl::StrAppend(&origin.warm_start, "/", runner.last_epoch);
  origin.alone = job_.alone();
  origin.identity = job_.identity();
  origin.settings_hash = data_.settings_hash;
  return origin;
}

run::EpochLoopOptions TrainRun::LoopOptions(const comm::Communicator& communicator) const {
  const settings::RunnerOptions& runner = job_.run.runner;
  run::EpochLoopOptions options;
  options.epochs = static_cast<uint64_t>(runner.epochs);
  options.early_stop = static_cast<uint64_t>(std::max<int64_t>(runner.early_stop, 0));
  options.settings_hash = data_.settings_hash;
  options.checkpoints = {static_cast<uint64_t>(runner.checkpoint_steps), runner.checkpoint_minutes};
  if (job_.alone()) options.how_to_resume = absl::StrCat("continue with: ", settings::ResumeCommand(job_.args));
  if (fleet::WorkerNode* const worker = job_.fleet->worker(); worker != nullptr)
    options.servers = run::ServerCheckpoints{[worker](uint64_t number) { return worker->BeginSnapshot(number); },
                                             {worker->mode().steps_together(), communicator.traits().batches_a_push}};
  return options;
}

absl::Status TrainRun::Start() {
  ASSIGN_OR_RETURN(const run::RunStart start, run::FindRunStart(Origin(), team_, root_.get(), job_.store(), reporter_));
  RETURN_IF_ERROR(session_.Begin({start.epoch, start.first_step, start.position}));
  ASSIGN_OR_RETURN(comm::Communicator* const communicator,
                   job_.fleet->StartCommunicator(start.first_step + run::MostBatches(start.places)));
  trainer_ =
      std::make_unique<train::Trainer>(model::TorchNets(*job_.model, job_.run.model), *communicator,
                                       train::TrainerOptions{.threads = static_cast<int>(job_.run.runner.thread_num),
                                                             .clip_by_norm = job_.run.optimizer.clip_by_norm,
                                                             .tracer = job_.tracer.get()});
  const run::EpochLoopParts parts{.session = session_,
                                  .stop = stop_,
                                  .train_pass = MakePass(),
                                  .spec = job_.model->spec(),
                                  .validator = trainer_.get(),
                                  .validation = validation_.dataset.get(),
                                  .root = root_.get(),
                                  .model = job_.store(),
                                  .reporter = reporter_,
                                  .observer = *this};
  loop_ = std::make_unique<run::EpochLoop>(parts, LoopOptions(*communicator), start);
  if (!job_.alone()) stop_.TellTeam();
  return absl::OkStatus();
}

run::TrainPass TrainRun::MakePass() {
  return [this](const base::DataPosition& done, uint64_t first_step, train::PassObserver& observer) {
    return trainer_->RunPass(*data_.dataset, base::StepKind::kTrain, done, first_step, observer);
  };
}

void TrainRun::BeginPass(uint64_t epoch) {
  if (progress_ != nullptr) progress_->BeginEpoch(epoch);
}

void TrainRun::EndPass() {
  if (progress_ != nullptr) progress_->EndEpoch();
}

void TrainRun::AfterStep(const train::PassObserver::Step& step, train::PassMeter& meter) {
  bad_gradients_.Add(session_.epoch(), step.result);
  if (progress_ != nullptr) progress_->Add(step);
  if (job_.metrics != nullptr) job_.metrics->Add(step);
  if (reporter_.style() == train::ReportStyle::kTerminal)
    reporter_.Live(Complete(meter.Interval()), data_.dataset->progress());
  if (meter.batches() % static_cast<uint64_t>(job_.run.runner.print_interval) != 0) return;
  const train::IntervalReport report = Complete(meter.TakeInterval());
  if (job_.metrics != nullptr) job_.metrics->Report(report);
  reporter_.Interval(report);
}

// With what the heartbeats tell of the whole job.
train::IntervalReport TrainRun::Complete(train::IntervalReport report) const {
  if (progress_ != nullptr) report.cluster = progress_->Cluster();
  return report;
}

void TrainRun::EpochTrained(train::EpochReport report) {
  report.bad_lines = data_.dataset->progress().bad_lines;
  reporter_.Epoch(report);
  if (job_.run.runner.dataset_debug) ReportProfile(report);
  bad_gradients_.LogTotal();
}

// Seconds of the reading threads and of the steps that waited for them.
void TrainRun::ReportProfile(const train::EpochReport& report) {
  const data::Progress progress = data_.dataset->progress();
  reporter_.Note(absl::StrFormat(
      "dataset profile of epoch %d (%.2f s): read %.2f s, parse %.2f s, blocked %.2f s, merge %.2f s, waited for data "
      "%.2f s; %d samples, %d bad lines",
      report.epoch, report.seconds, progress.read_seconds, progress.parse_seconds, progress.blocked_seconds,
      progress.merge_seconds, progress.wait_seconds, progress.samples, progress.bad_lines));
}

absl::Status TrainRun::OnBadLoss(uint64_t epoch, const data::Batch& batch, const absl::Status& status) {
  const std::string path =
      absl::StrCat(job_.run.runner.model_save_path, "/bad_batch-", epoch, "-", batch.index, ".txt");
  absl::Status written = base::WriteFileAtomically(path, BatchText(batch, data_.schema, batch.size));
  const std::string where = written.ok() ? absl::StrCat("the batch is kept in ", path)
                                         : absl::StrCat("and the batch could not be kept: ", written.message());
  const std::string input = HugeInput(batch, data_.schema);
  const std::string advice = input.empty() ? "Try a lower learning rate or hyper_parameters.clip_by_norm"
                                           : absl::StrCat(input, ": scale or clip such values in the data");
  return absl::AbortedError(absl::StrCat("epoch ", epoch, ": ", status.message(), "; ", where, ". ", advice));
}

}  // namespace regatta::worker
