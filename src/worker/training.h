// A model that this worker trains together with the others of its job, or alone: what a program of one's own needs
// beside the Fleet.
//
//   ASSIGN_OR_RETURN(auto training, Training::Start(*fleet, model, options));   // InitWorker with the model's tables
//   ASSIGN_OR_RETURN(auto data, OpenDataset(*fleet, model, "clicks/train", {.batch_size = 512}));
//   for (int epoch = 0; epoch < 3; ++epoch) {
//     ASSIGN_OR_RETURN(const train::EpochReport report, training->TrainEpoch(*data));   // report.metrics.auc, …
//     RETURN_IF_ERROR(training->Save(absl::StrCat("model/epoch_", epoch)));
//   }
//   fleet->StopWorker();
//
// Every worker makes the same calls in the same order.
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
#include "settings/optimizer.h"
#include "train/pass_meter.h"
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

class Training : private train::PassObserver {
 public:
  // Borrows fleet and model.
  static absl::StatusOr<std::unique_ptr<Training>> Start(fleet::Fleet& fleet, const model::Model& model,
                                                         const TrainingOptions& options);
  ~Training() override;

  // One pass over the data. The report holds the metrics of all workers' samples, in every worker.
  absl::StatusOr<train::EpochReport> TrainEpoch(data::Dataset& dataset);
  // The metrics of the model on `dataset`, of which every worker has its share; nothing changes.
  absl::StatusOr<train::EpochReport> Evaluate(data::Dataset& dataset);
  // Fleet::SavePersistables with where training is.
  absl::Status Save(const std::string& dir);

  // Epochs and steps done, those of a save that was loaded included.
  uint64_t epoch() const { return epoch_.value_or(options_.first_epoch.value_or(fleet_.loaded().epochs)); }
  uint64_t step() const { return step_.value_or(options_.first_step.value_or(fleet_.loaded().steps)); }

 private:
  Training(fleet::Fleet& fleet, const model::Model& model, const TrainingOptions& options);
  StepAction AfterStep(const Step& step) override;
  absl::Status AtPause(const base::DataPosition& position) override;
  absl::Status AtEnd(const train::PassEnd& end) override;
  absl::Status OnBadLoss(const data::Batch& batch, absl::Status status) override;
  bool StopsHere() override { return false; }
  bool StopAsked() override;

  absl::Status StartTrainer();
  absl::StatusOr<train::PassEnd> RunPass(data::Dataset& dataset, base::StepKind kind);
  absl::StatusOr<train::EpochReport> Report(const char* what, const data::Dataset& dataset);

  fleet::Fleet& fleet_;
  const model::Model& model_;
  const TrainingOptions options_;
  train::Reporter reporter_;
  std::unique_ptr<train::Trainer> trainer_;  // from the first pass on: the model may be loaded until then
  std::unique_ptr<train::PassMeter> meter_;
  std::optional<uint64_t> epoch_;  // from the first pass on
  std::optional<uint64_t> step_;
};

}  // namespace regatta::worker
