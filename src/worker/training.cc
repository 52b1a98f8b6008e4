#include "worker/training.h"

#include <algorithm>

#include "model/torch_net.h"
#include "run/rounds.h"
#include "worker/model_tables.h"

namespace regatta::worker {
namespace {

namespace rounds = run::rounds;

}  // namespace

absl::StatusOr<std::unique_ptr<Training>> Training::Start(fleet::Fleet& fleet, const model::Model& model,
                                                          const TrainingOptions& options) {
  TrainingOptions made = options;
  ASSIGN_OR_RETURN(made.worker.tables, TablesOf(model.spec(), options.optimizer, options.seed));
  made.worker.cancelled = [stop = options.stop, cancelled = options.worker.cancelled] { return stop() || cancelled(); };
  RETURN_IF_ERROR(fleet.InitWorker(made.worker));
  return std::unique_ptr<Training>(new Training(fleet, model, made));
}

Training::Training(fleet::Fleet& fleet, const model::Model& model, const TrainingOptions& options)
    : fleet_(fleet),
      model_(model),
      options_(options),
      reporter_(train::ReportStyle::kLines, train::ReportAuc::kYes),
      session_(fleet.team()) {}

Training::~Training() = default;

absl::Status Training::StartTrainer() {
  if (trainer_ != nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(session_.Begin({.epoch = first_epoch(), .first_step = first_step()}));
  ASSIGN_OR_RETURN(comm::Communicator* const communicator, fleet_.StartCommunicator(session_.first_step()));
  trainer_ = std::make_unique<train::Trainer>(
      model::TorchNets(model_), *communicator,
      train::TrainerOptions{.threads = options_.worker.threads, .clip_by_norm = options_.optimizer.clip_by_norm});
  return absl::OkStatus();
}

absl::StatusOr<train::PassEnd> Training::RunPass(data::Dataset& dataset, base::StepKind kind,
                                                 const base::DataPosition& position) {
  return trainer_->RunPass(dataset, kind, position, step(), *this);
}

// Every worker adds up everybody's sums in the same order, and so has the same numbers; only the time is its own.
absl::StatusOr<train::EpochReport> Training::Merge(const char* what, const std::map<int, run::Bytes>& meters) const {
  const train::EpochReport mine = meter_->Epoch(what);
  train::PassMeter all(mine.epoch);
  for (const auto& [rank, meter] : meters)
    RETURN_IF_ERROR(base::Annotate(all.Merge(meter), absl::StrCat("metrics of worker ", rank)));
  train::EpochReport report = all.Epoch(what);
  report.seconds = mine.seconds;
  report.samples_per_second = mine.seconds > 0 ? static_cast<double>(report.metrics.samples) / mine.seconds : 0;
  return report;
}

absl::StatusOr<train::EpochReport> Training::Finish(const std::string& pass, train::EpochReport report,
                                                    const data::Dataset& dataset, Print print) {
  ASSIGN_OR_RETURN(report.bad_lines,
                   run::AllReduceSum(fleet_.team(), rounds::BadLinesOf(pass), dataset.progress().bad_lines));
  if (print == Print::kYes && options_.print_interval > 0 && fleet_.is_first_worker()) reporter_.Epoch(report);
  return report;
}

// A pass that any worker stopped is over for all: CANCELLED.
absl::StatusOr<train::EpochReport> Training::TrainEpoch(data::Dataset& dataset) {
  RETURN_IF_ERROR(StartTrainer());
  meter_ = std::make_unique<train::PassMeter>(epoch());
  const bool over = session_.over();
  train::PassEnd end{.position = {}, .complete = true};
  if (!over) {
    ASSIGN_OR_RETURN(end, RunPass(dataset, base::StepKind::kTrain, session_.position()));
  }
  run::EndMessage mine;
  mine.set_stopped(!end.complete);
  ASSIGN_OR_RETURN(const run::EndMessage all, session_.EndPass(mine));
  if (all.stopped()) return absl::CancelledError(absl::StrCat("stopped in epoch ", epoch()));
  ASSIGN_OR_RETURN(const auto meters, session_.GatherMetrics(meter_->Serialize()));
  ASSIGN_OR_RETURN(train::EpochReport report, Merge("epoch", meters));
  ASSIGN_OR_RETURN(report, Finish(rounds::EpochName(epoch()), report, dataset, over ? Print::kNo : Print::kYes));
  RETURN_IF_ERROR(session_.FinishEpoch(end.position.low));
  evaluations_ = 0;
  fleet_.SetEpochsDone(session_.epoch());
  return report;
}

absl::StatusOr<train::EpochReport> Training::Evaluate(data::Dataset& dataset) {
  RETURN_IF_ERROR(StartTrainer());
  meter_ = std::make_unique<train::PassMeter>(std::max<uint64_t>(epoch(), 1) - 1);
  const std::string pass = rounds::EvaluationName(evaluations_, fleet_.epochs_done());
  const bool over = fleet_.team().Completed(rounds::BadLinesOf(pass));
  train::PassEnd end{.position = {}, .complete = true};
  if (!over) {
    ASSIGN_OR_RETURN(end, RunPass(dataset, base::StepKind::kInfer, {.pass = epoch()}));
  }
  run::EndMessage mine;
  mine.set_stopped(!end.complete);
  ASSIGN_OR_RETURN(const run::EndMessage all, run::GatherEnd(fleet_.team(), pass, mine));
  if (all.stopped()) return absl::CancelledError(absl::StrCat("stopped after ", epoch(), " epochs"));
  ASSIGN_OR_RETURN(const auto meters, run::AllGather(fleet_.team(), rounds::MetricsOf(pass), meter_->Serialize()));
  ASSIGN_OR_RETURN(train::EpochReport report, Merge("evaluation after epoch", meters));
  ASSIGN_OR_RETURN(report, Finish(pass, report, dataset, over ? Print::kNo : Print::kYes));
  ++evaluations_;
  return report;
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
