// A model that this worker trains together with the others of its job, or alone: what a program of one's own needs
// beside the Fleet.
//
//   ASSIGN_OR_RETURN(auto training, Training::Start(*fleet, model, options));   // InitWorker with the model's tables
//   ASSIGN_OR_RETURN(auto data, OpenDataset(*fleet, model, "clicks/train", {.batch_size = 512}));
//   while (training->epoch() < 3) {
//     ASSIGN_OR_RETURN(const train::EpochReport report, training->TrainEpoch(*data));   // report.auc(), …
//     RETURN_IF_ERROR(training->Save(absl::StrCat("model/epoch_", report.epoch)));
//   }
//   fleet->StopWorker();
//
// Every worker makes the same calls in the same order.
//
// With LossPolicy::kAwait a worker that was killed may be started again, with servers that have a data_dir. The new
// process makes the same calls as a fresh one. Its loop starts at training->epoch(), the epoch that its predecessor was
// in, and TrainEpoch goes on at the batch that the servers have not seen. What all workers had done together before the
// kill (the end of that epoch, Evaluate, Save, Fleet's calls since) is not done again: those calls return at once.
// Servers remember 256 such calls.
// Thread-safety: one thread; the trainer's threads are its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "data/dataset.h"
#include "fleet/fleet.h"
#include "model/model.h"
#include "run/session.h"
#include "settings/optimizer.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::worker {

struct TrainingOptions {
  // Rules by their names (docs/rules.md): .sparse = {.name = "adagrad", .learning_rate = 0.05}.
  settings::OptimizerOptions optimizer;
  fleet::WorkerOptions worker;  // mode, threads, …; the tables are made of the model
  uint64_t seed = 12345;        // of initial values

  std::string model_name = "model";  // that saves carry

  uint64_t print_interval = 100;  // batches between two lines on stdout; 0 = no lines, of epochs neither
  // What shuffling and learning-rate schedules count from; nothing = where the save had come to that the model was
  // loaded from (Fleet::loaded), or 0. Say 0 to begin a schedule anew on loaded weights.
  std::optional<uint64_t> first_epoch;
  std::optional<uint64_t> first_step;
  // Asked after every step and while others or data are awaited, by several threads at once: true ends the epoch, of
  // all workers, with CANCELLED.
  std::function<bool()> stop = [] { return false; };
};

class Training {
 public:
  // Borrows fleet and model.
  static absl::StatusOr<std::unique_ptr<Training>> Start(fleet::Fleet& fleet, const model::Model& model,
                                                         const TrainingOptions& options);

  // One pass over the data. The report holds the metrics of all workers' samples, in every worker.
  absl::StatusOr<train::EpochReport> TrainEpoch(data::Dataset& dataset);
  // The metrics of the model on `dataset`, of which every worker has its share; nothing changes.
  absl::StatusOr<train::EpochReport> Evaluate(data::Dataset& dataset);
  // The predictions for this worker's share of data, which needs no labels (OpenDataset with LabelUse::kAbsent). `use`
  // gets each batch with a view for each output, one batch at a time, in any order: Batch::index counts them. Its error
  // ends the pass. Nothing changes, and no other worker is waited for.
  using UsePredictions = std::function<absl::Status(const data::Batch& batch, train::Predictions predictions)>;
  absl::Status Predict(data::Dataset& dataset, const UsePredictions& use);
  // Fleet::SavePersistables with where training is.
  absl::Status Save(const std::string& dir);

  // Epochs and steps done, those of a save that was loaded included. Where a loop of epochs starts, also in a process
  // that replaces a killed one.
  uint64_t epoch() const {
    return trainer_ != nullptr ? session_.epoch() : run::Session::EpochOf(fleet_.team(), first_epoch());
  }
  uint64_t step() const { return trainer_ != nullptr ? session_.first_step() : first_step(); }

 private:
  Training(fleet::Fleet& fleet, const model::Model& model, const TrainingOptions& options);
  class Pass;            // counts and prints
  class PredictingPass;  // gives predictions to their user

  uint64_t first_epoch() const { return options_.first_epoch.value_or(fleet_.loaded().epochs); }
  uint64_t first_step() const { return options_.first_step.value_or(fleet_.loaded().steps); }
  absl::Status StartTrainer();
  // Runs a pass of this worker; nothing of it if it is over.
  enum class Train : uint8_t { kNow, kOver };
  absl::StatusOr<train::PassEnd> RunPass(Train train, data::Dataset& dataset, base::StepKind kind,
                                         const base::DataPosition& position, Pass& pass);
  // Fills in the bad lines of all workers and prints the report of the pass `name`.
  absl::StatusOr<train::EpochReport> Finish(Train train, const std::string& name, train::EpochReport report,
                                            const data::Dataset& dataset);
  bool StopAsked();

  fleet::Fleet& fleet_;
  const model::Model& model_;
  const TrainingOptions options_;
  train::Reporter reporter_;
  run::Session session_;
  std::unique_ptr<train::Trainer> trainer_;  // from the first pass on: the model may be loaded until then
  uint64_t evaluations_ = 0;                 // since the last epoch
};

}  // namespace regatta::worker
