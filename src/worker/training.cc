#include "worker/training.h"

#include <algorithm>

#include "worker/model_tables.h"

namespace regatta::worker {

absl::StatusOr<std::unique_ptr<Training>> Training::Start(fleet::Fleet& fleet, const model::Model& model,
                                                          const TrainingOptions& options) {
  TrainingOptions made = options;
  ASSIGN_OR_RETURN(made.worker.tables, TablesOf(model.spec(), options.optimizer, options.seed));
  made.worker.cancelled = [stop = options.stop, cancelled = options.worker.cancelled] { return stop() || cancelled(); };
  if (options.worker.on_loss == fleet::OnLoss::kAwait)
    return absl::UnimplementedError(
        "OnLoss::kAwait: a program of one's own cannot take the place of a worker that died yet; regatta train can");
  RETURN_IF_ERROR(fleet.InitWorker(made.worker));
  return std::unique_ptr<Training>(new Training(fleet, model, made));
}

Training::Training(fleet::Fleet& fleet, const model::Model& model, const TrainingOptions& options)
    : fleet_(fleet), model_(model), options_(options), reporter_(train::ReportStyle::kLines, train::ReportAuc::kYes) {}

Training::~Training() = default;

absl::Status Training::StartTrainer() {
  if (trainer_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(comm::Communicator* const communicator, fleet_.StartCommunicator(step()));
  trainer_ = std::make_unique<train::Trainer>(
      model_, *communicator,
      train::TrainerOptions{.threads = options_.worker.threads, .clip_by_norm = options_.optimizer.clip_by_norm});
  return absl::OkStatus();
}

// A pass that any worker stopped is over for all: CANCELLED.
absl::StatusOr<train::PassEnd> Training::RunPass(data::Dataset& dataset, base::StepKind kind) {
  RETURN_IF_ERROR(StartTrainer());
  const uint64_t last = std::max<uint64_t>(epoch(), 1) - 1;
  meter_ = std::make_unique<train::PassMeter>(kind == base::StepKind::kTrain ? epoch() : last);
  ASSIGN_OR_RETURN(const train::PassEnd end, trainer_->RunPass(dataset, kind, {.pass = epoch()}, step(), *this));
  ASSIGN_OR_RETURN(const bool stopped, fleet_.team().Any("end of pass", !end.complete));
  if (stopped) return absl::CancelledError(absl::StrCat("stopped in epoch ", epoch()));
  return end;
}

// Every worker adds up everybody's sums in the same order, and so has the same numbers; only the time is its own.
absl::StatusOr<train::EpochReport> Training::Report(const char* what, const data::Dataset& dataset) {
  const train::EpochReport mine = meter_->Epoch(what);
  ASSIGN_OR_RETURN(const auto meters, fleet_.team().AllGather("metrics of the pass", meter_->Serialize()));
  train::PassMeter all(mine.epoch);
  for (const auto& [rank, meter] : meters)
    RETURN_IF_ERROR(base::Annotate(all.Merge(meter), absl::StrCat("metrics of worker ", rank)));
  train::EpochReport report = all.Epoch(what);
  report.seconds = mine.seconds;
  report.samples_per_second = mine.seconds > 0 ? static_cast<double>(report.metrics.samples) / mine.seconds : 0;
  ASSIGN_OR_RETURN(const int64_t bad_lines, fleet_.AllReduceWorker(dataset.progress().bad_lines, fleet::Reduce::kSum));
  report.bad_lines = static_cast<uint64_t>(bad_lines);
  if (options_.print_interval > 0 && fleet_.is_first_worker()) reporter_.Epoch(report);
  return report;
}

absl::StatusOr<train::EpochReport> Training::TrainEpoch(data::Dataset& dataset) {
  ASSIGN_OR_RETURN(const train::PassEnd end, RunPass(dataset, base::StepKind::kTrain));
  ASSIGN_OR_RETURN(const train::EpochReport report, Report("epoch", dataset));
  ASSIGN_OR_RETURN(step_, fleet_.team().AllReduceMax("steps of the pass", step() + end.position.low));
  epoch_ = epoch() + 1;
  return report;
}

absl::StatusOr<train::EpochReport> Training::Evaluate(data::Dataset& dataset) {
  RETURN_IF_ERROR(RunPass(dataset, base::StepKind::kInfer).status());
  return Report("evaluation after epoch", dataset);
}

absl::Status Training::Save(const std::string& dir) {
  checkpoint::RunState run;
  run.epoch = std::max<uint64_t>(epoch(), 1) - 1;
  run.epoch_state = epoch() > 0 ? checkpoint::EpochState::kFinished : checkpoint::EpochState::kRunning;
  run.step = step();
  run.model = checkpoint::ModelIdentity{"c++", options_.model_name, {}, SavedSchemaOf(model_.spec().schema)};
  return fleet_.SavePersistables(dir, run);
}

train::PassObserver::StepAction Training::AfterStep(const Step& step) {
  meter_->Add(step);
  if (options_.print_interval > 0 && meter_->batches() % options_.print_interval == 0)
    reporter_.Interval(meter_->TakeInterval());
  return StopAsked() ? StepAction::kStop : StepAction::kGoOn;
}

absl::Status Training::AtPause(const base::DataPosition&) { return absl::OkStatus(); }

absl::Status Training::AtEnd(const train::PassEnd&) { return absl::OkStatus(); }

absl::Status Training::OnBadLoss(const data::Batch& batch, absl::Status status) {
  return base::Annotate(status, absl::StrCat("epoch ", epoch(), ", batch ", batch.index));
}

bool Training::StopAsked() {
  if (fleet_.team().stop_asked()) return true;
  if (!options_.stop()) return false;
  fleet_.team().AskToStop();
  return true;
}

}  // namespace regatta::worker
