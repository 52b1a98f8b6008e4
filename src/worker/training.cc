#include "worker/training.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "model/torch_net.h"
#include "run/meter_merge.h"
#include "run/metered_pass.h"
#include "run/rounds.h"
#include "worker/model_tables.h"

namespace regatta::worker {
namespace {

namespace rounds = run::rounds;

run::EndMessage EndOf(const train::PassEnd& end) {
  run::EndMessage message;
  message.set_stopped(!end.complete);
  return message;
}

// What workers must agree on to merge their metrics; "" for the usual one output.
std::string OutputsText(const train::NetSpec& spec) {
  const train::OutputSpec& first = spec.outputs.front();
  if (spec.outputs.size() == 1 && first.metric == train::Metric::kBinary && first.label.empty()) return "";
  return absl::StrJoin(spec.outputs, ", ", [](std::string* text, const train::OutputSpec& output) {
    absl::StrAppend(text, output.name, output.metric == train::Metric::kBinary ? " (binary) of " : " (regression) of ",
                    output.label.empty() ? "the first label" : output.label);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Training>> Training::Start(fleet::Fleet& fleet, const model::Model& model,
                                                          const TrainingOptions& options) {
  TrainingOptions made = options;
  ASSIGN_OR_RETURN(made.worker.tables, TablesOf(model.spec(), options.optimizer, options.seed));
  made.worker.cancelled = [stop = options.stop, cancelled = options.worker.cancelled] { return stop() || cancelled(); };
  if (const std::string outputs = OutputsText(model.spec()); !outputs.empty())
    made.worker.settings["the model's outputs"] = outputs;
  RETURN_IF_ERROR(fleet.InitWorker(made.worker));
  return std::unique_ptr<Training>(new Training(fleet, model, made));
}

Training::Training(fleet::Fleet& fleet, const model::Model& model, const TrainingOptions& options)
    : fleet_(fleet),
      model_(model),
      options_(options),
      reporter_(train::ReportStyle::kLines, train::ReportAuc::kYes),
      session_(fleet.team()) {}

class Training::Pass : public run::MeteredPass {
 public:
  Pass(Training& training, uint64_t epoch)
      : MeteredPass(epoch, training.model_.spec(), [&training] { return training.StopAsked(); }), training_(training) {}

  StepAction AfterStep(const Step& step) override {
    const StepAction action = MeteredPass::AfterStep(step);
    const uint64_t interval = training_.options_.print_interval;
    if (interval > 0 && meter().batches() % interval == 0) training_.reporter_.Interval(meter().TakeInterval());
    return action;
  }
  absl::Status OnBadLoss(const data::Batch& batch, absl::Status status) override {
    return base::Annotate(status, absl::StrCat("epoch ", training_.epoch(), ", batch ", batch.index));
  }

 private:
  Training& training_;
};

class Training::PredictingPass : public run::MeteredPass {
 public:
  PredictingPass(Training& training, const UsePredictions& use)
      : MeteredPass(training.epoch(), training.model_.spec(), [&training] { return training.StopAsked(); }),
        use_(use) {}

  StepAction AfterStep(const Step& step) override {
    const StepAction action = MeteredPass::AfterStep(step);
    if (status.ok()) status = use_(*step.result.batch, step.result.predictions);
    return status.ok() ? action : StepAction::kStop;
  }

  absl::Status status;

 private:
  const UsePredictions& use_;
};

absl::Status Training::StartTrainer() {
  if (trainer_ != nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(session_.Begin({.epoch = first_epoch(), .first_step = first_step()}));
  ASSIGN_OR_RETURN(comm::Communicator* const communicator, fleet_.StartCommunicator(session_.first_step()));
  trainer_ = std::make_unique<train::Trainer>(
      model::TorchNets(model_), *communicator,
      train::TrainerOptions{.threads = options_.worker.threads, .clip_by_norm = options_.optimizer.clip_by_norm});
  return absl::OkStatus();
}

absl::StatusOr<train::PassEnd> Training::RunPass(Train train, data::Dataset& dataset, base::StepKind kind,
                                                 const base::DataPosition& position, Pass& pass) {
  if (train == Train::kOver) return train::PassEnd{.position = {}, .complete = true};
  return trainer_->RunPass(dataset, kind, position, step(), pass);
}

absl::StatusOr<train::EpochReport> Training::Finish(Train train, const std::string& name, train::EpochReport report,
                                                    const data::Dataset& dataset) {
  ASSIGN_OR_RETURN(report.bad_lines,
                   run::AllReduceSum(fleet_.team(), rounds::BadLinesOf(name), dataset.progress().bad_lines));
  if (train == Train::kNow && options_.print_interval > 0 && fleet_.is_first_worker()) reporter_.Epoch(report);
  return report;
}

// A pass that any worker stopped is over for all: CANCELLED.
absl::StatusOr<train::EpochReport> Training::TrainEpoch(data::Dataset& dataset) {
  RETURN_IF_ERROR(StartTrainer());
  const Train train = session_.over() ? Train::kOver : Train::kNow;
  Pass pass(*this, epoch());
  ASSIGN_OR_RETURN(const train::PassEnd end,
                   RunPass(train, dataset, base::StepKind::kTrain, session_.position(), pass));
  ASSIGN_OR_RETURN(const run::EndMessage all, session_.EndPass(EndOf(end)));
  if (all.stopped()) return absl::CancelledError(absl::StrCat("stopped in epoch ", epoch()));
  ASSIGN_OR_RETURN(const auto meters, session_.GatherMetrics(pass.meter().Serialize()));
  ASSIGN_OR_RETURN(train::EpochReport report, run::TeamReport("epoch", meters, pass.meter()));
  ASSIGN_OR_RETURN(report, Finish(train, rounds::EpochName(epoch()), report, dataset));
  RETURN_IF_ERROR(session_.FinishEpoch(end.position.low));
  evaluations_ = 0;
  fleet_.SetEpochsDone(session_.epoch());
  return report;
}

absl::StatusOr<train::EpochReport> Training::Evaluate(data::Dataset& dataset) {
  RETURN_IF_ERROR(StartTrainer());
  run::Team& team = fleet_.team();
  const std::string name = rounds::EvaluationName(evaluations_, fleet_.epochs_done());
  const Train train = team.Completed(rounds::BadLinesOf(name)) ? Train::kOver : Train::kNow;
  Pass pass(*this, std::max<uint64_t>(epoch(), 1) - 1);
  ASSIGN_OR_RETURN(const train::PassEnd end, RunPass(train, dataset, base::StepKind::kInfer, {.pass = epoch()}, pass));
  if (pass.meter().unlabelled() > 0)
    return absl::InvalidArgumentError(
        "Evaluate: the data was opened without labels, so there is nothing to measure predictions against; Predict "
        "gives predictions");
  ASSIGN_OR_RETURN(const run::EndMessage all, run::GatherEnd(team, name, EndOf(end)));
  if (all.stopped()) return absl::CancelledError(absl::StrCat("stopped after ", epoch(), " epochs"));
  ASSIGN_OR_RETURN(const auto meters, run::AllGather(team, rounds::MetricsOf(name), pass.meter().Serialize()));
  ASSIGN_OR_RETURN(train::EpochReport report, run::TeamReport("evaluation after epoch", meters, pass.meter()));
  ASSIGN_OR_RETURN(report, Finish(train, name, report, dataset));
  ++evaluations_;
  return report;
}

absl::Status Training::Predict(data::Dataset& dataset, const UsePredictions& use) {
  RETURN_IF_ERROR(StartTrainer());
  PredictingPass pass(*this, use);
  ASSIGN_OR_RETURN(const train::PassEnd end,
                   trainer_->RunPass(dataset, base::StepKind::kInfer, {.pass = epoch()}, step(), pass));
  RETURN_IF_ERROR(pass.status);
  return end.complete ? absl::OkStatus() : absl::CancelledError(absl::StrCat("stopped after ", epoch(), " epochs"));
}

absl::Status Training::Save(const std::string& dir) {
  checkpoint::RunState run;
  run.epoch = std::max<uint64_t>(epoch(), 1) - 1;
  run.epoch_state = epoch() > 0 ? checkpoint::EpochState::kFinished : checkpoint::EpochState::kRunning;
  run.step = step();
  run.model = checkpoint::ModelIdentity{"c++", options_.model_name, {}, SavedSchemaOf(model_.spec().schema)};
  return fleet_.SavePersistables(dir, run);
}

bool Training::StopAsked() {
  if (fleet_.team().stop_asked()) return true;
  if (!options_.stop()) return false;
  fleet_.team().AskToStop();
  return true;
}

}  // namespace regatta::worker
