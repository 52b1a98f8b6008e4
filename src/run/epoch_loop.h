// The epochs of a run, from where it begins to its end: each is trained, saved and validated, together with the other
// workers. A stop saves where the run is, once for all workers. `regatta train` is this loop with options and reports.
//
// A process that replaces a killed one walks through its epoch again: what all workers had done before is not done
// again (session.h).
// Thread-safety: one thread; the trainer's threads are its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "checkpoint/model_store.h"
#include "checkpoint/save_root.h"
#include "data/dataset.h"
#include "run/epoch_checkpoints.h"
#include "run/rounds.h"
#include "run/run_end.h"
#include "run/run_observer.h"
#include "run/run_saves.h"
#include "run/run_start.h"
#include "run/session.h"
#include "run/stop_control.h"
#include "run/validation.h"
#include "train/net_spec.h"
#include "train/pass_meter.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::run {

struct EpochLoopOptions {
  uint64_t epochs = 1;      // of the run; those that are done count
  uint64_t early_stop = 0;  // epochs without a better validation; 0 = never
  uint64_t settings_hash = 0;
  CheckpointPace checkpoints = {};
  std::optional<ServerCheckpoints> servers = {};         // nothing in a process that trains alone
  std::string how_to_resume = "continue with --resume";  // the end of the line that says that the run has stopped
};

// Makes the steps of an epoch that `done` does not contain; `first_step` is the number of the epoch's first one.
using TrainPass = std::function<absl::StatusOr<train::PassEnd>(const base::DataPosition& done, uint64_t first_step,
                                                               train::PassObserver& observer)>;

// All are borrowed.
struct EpochLoopParts {
  Session& session;  // begun
  StopControl& stop;
  TrainPass train_pass;
  const train::NetSpec& spec;            // of the net that is trained
  train::Trainer* validator = nullptr;   // not null where `validation` is not
  data::Dataset* validation = nullptr;   // the first worker's; null: nothing is validated
  checkpoint::SaveRoot* root = nullptr;  // the first worker's; null in the others
  checkpoint::ModelStore& model;
  train::Reporter& reporter;
  RunObserver& observer;
  AddState add_state = nullptr;  // what saves hold besides; null = nothing
};

class EpochLoop {
 public:
  // `start` is where the session began.
  EpochLoop(const EpochLoopParts& parts, const EpochLoopOptions& options, const RunStart& start);

  // Once. Afterwards the save root says how the run ended.
  absl::StatusOr<RunEnd> Run();

 private:
  absl::StatusOr<RunEnd> RunEpochs();
  absl::StatusOr<train::PassEnd> RunPass();
  absl::Status FinishEpoch(const train::PassEnd& end);
  absl::Status MergeMeters();
  absl::StatusOr<RunEnd> StopAlone(const train::PassEnd& end);
  absl::StatusOr<RunEnd> StopTogether(const train::PassEnd& end, const EndMessage& all);
  absl::Status SaveStopped(const std::map<int, Bytes>& payloads);
  absl::StatusOr<RunEnd> StopUnvalidated();
  uint64_t epoch() const { return parts_.session.epoch(); }
  bool alone() const { return !options_.servers.has_value(); }

  const EpochLoopParts parts_;
  const EpochLoopOptions options_;
  Team& team_;
  const std::optional<uint64_t> unvalidated_;  // the epoch whose save the run resumes from
  std::optional<uint64_t> finished_;           // the epoch before the one in which this process replaces another one
  bool returns_;                               // it does, and has begun no epoch yet
  std::string restored_meter_;                 // what a save has counted of the first epoch
  Validation validation_;
  RunSaves saves_;
  std::unique_ptr<train::PassMeter> meter_;  // of the epoch
  EpochCheckpoints checkpoints_;             // the last: it looks at the others, in the background
};

}  // namespace regatta::run
