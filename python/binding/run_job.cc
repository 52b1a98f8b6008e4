#include "binding/run_job.h"

#include <utility>

#include "checkpoint/run_record.h"
#include "fleet/worker_node.h"
#include "run/rounds.h"

namespace regatta::binding {

using checkpoint::OpenMode;

RunJob::RunJob(fleet::Fleet& fleet, const RunJobOptions& options, run::AddState add_state)
    : fleet_(fleet),
      options_(options),
      add_state_(std::move(add_state)),
      team_(fleet.team()),
      reporter_(train::ReportStyle::kLines, train::ReportAuc::kYes),
      session_(team_) {}

absl::StatusOr<std::unique_ptr<RunJob>> RunJob::Open(fleet::Fleet& fleet, const RunJobOptions& options,
                                                     run::AddState add_state) {
  std::unique_ptr<RunJob> job(new RunJob(fleet, options, std::move(add_state)));
  RETURN_IF_ERROR(run::AllOk(job->team_, run::rounds::Open(), job->OpenRoot()));
  RETURN_IF_ERROR(run::AllOk(job->team_, run::rounds::Start(), job->FindStart()));
  return job;
}

// A finished run is begun anew. A worker that takes the place of the one that opened the folder goes on with its run.
OpenMode RunJob::Mode() const {
  const auto record = checkpoint::ReadRunRecord(options_.save);
  if (const client::ResumePoint* const resume_point = team_.resume_point(); resume_point != nullptr) {
    const bool its = record.ok() && resume_point->predecessor == fleet::WhereIs(record->pid);
    if (its || team_.Completed(run::rounds::Open())) return OpenMode::kResume;
  }
  if (!options_.resume) return OpenMode::kOverwrite;
  return record.ok() && record->phase == checkpoint::RunPhase::kFinished ? OpenMode::kFresh : OpenMode::kResume;
}

absl::Status RunJob::OpenRoot() {
  if (options_.save.empty() || !team_.chief()) return absl::OkStatus();
  mode_ = Mode();
  ASSIGN_OR_RETURN(
      root_, checkpoint::SaveRoot::Open({.path = options_.save, .mode = mode_, .keep_epochs = options_.keep_epochs}));
  return absl::OkStatus();
}

absl::Status RunJob::FindStart() {
  run::RunOrigin origin;
  origin.resume = root_ != nullptr && mode_ == OpenMode::kResume && !root_->saves().empty();
  origin.alone = fleet_.alone();
  ASSIGN_OR_RETURN(start_, run::FindRunStart(origin, team_, root_.get(), fleet_.model(), reporter_));
  return session_.Begin({start_.epoch, start_.first_step, start_.position});
}

absl::Status RunJob::Begin(Steps& steps, uint64_t epochs) {
  if (run_ != nullptr) return absl::FailedPreconditionError("the session's epochs have begun");
  signal_.emplace();
  stop_ = std::make_unique<run::StopControl>(team_, run::StopLimits{.signal = &StopSignal::Requested});
  if (!fleet_.alone()) stop_->TellTeam();
  run::EpochLoopOptions options;
  options.epochs = epochs;
  options.checkpoints = options_.checkpoints;
  options.how_to_resume = "the same command goes on from there";
  if (fleet::WorkerNode* const worker = fleet_.worker(); worker != nullptr)
    options.servers =
        run::ServerCheckpoints{[worker](uint64_t number) { return worker->BeginSnapshot(number); },
                               {worker->mode().steps_together(), steps.communicator().traits().batches_a_push}};
  fleet_.SetEpochsDone(session_.epoch());
  run_ = std::make_unique<run::SteppedRun>(run::SteppedRunParts{.session = session_,
                                                                .stop = *stop_,
                                                                .communicator = steps.communicator(),
                                                                .root = root_.get(),
                                                                .model = fleet_.model(),
                                                                .reporter = reporter_,
                                                                .add_state = add_state_},
                                           options_.metric, options, start_);
  return absl::OkStatus();
}

absl::Status RunJob::EndPass(bool complete) {
  RETURN_IF_ERROR(run_->EndPass(complete));
  fleet_.SetEpochsDone(session_.epoch());
  return absl::OkStatus();
}

}  // namespace regatta::binding
