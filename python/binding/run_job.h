// The run of a job whose loop is Python's: its saves, where it begins, its epochs.
// Thread-safety: one thread at a time. `state` is called with the interpreter's lock, which is free then.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "binding/steps.h"
#include "binding/stop_signal.h"
#include "checkpoint/save_root.h"
#include "fleet/fleet.h"
#include "run/run_start.h"
#include "run/session.h"
#include "run/stepped_run.h"
#include "run/stop_control.h"
#include "train/net_spec.h"
#include "train/report.h"

namespace regatta::binding {

struct RunJobOptions {
  std::string save;    // the folder of the saves; "" = none
  bool resume = true;  // goes on with an interrupted run that is there; else it begins anew, whatever is there
  uint64_t keep_epochs = 0;
  run::CheckpointPace checkpoints;
  train::Metric metric = train::Metric::kBinary;
};

class RunJob {
 public:
  // The fleet has joined the job, and its communicator has not started. Finds where the run begins.
  static absl::StatusOr<std::unique_ptr<RunJob>> Open(fleet::Fleet& fleet, const RunJobOptions& options,
                                                      run::AddState add_state);

  // Whether this process replaces a killed one; the save that the run resumes from, or "".
  bool returns() const { return session_.returns(); }
  const std::string& resumed_from() const { return start_.folder; }
  // Where the steps go on, for the communicator.
  uint64_t first_step() const { return start_.first_step + run::MostBatches(start_.places); }
  uint64_t epoch() const { return session_.epoch(); }
  bool saves() const { return root_ != nullptr; }

  // Once, before the first pass.
  absl::Status Begin(Steps& steps, uint64_t epochs);
  // Null before Begin.
  run::SteppedRun* run() const { return run_.get(); }
  // Of SteppedRun; Fleet's collective calls know of the epochs that are over.
  absl::Status EndPass(bool complete);

 private:
  RunJob(fleet::Fleet& fleet, const RunJobOptions& options, run::AddState add_state);
  checkpoint::OpenMode Mode() const;
  absl::Status OpenRoot();
  absl::Status FindStart();

  fleet::Fleet& fleet_;
  const RunJobOptions options_;
  const run::AddState add_state_;
  run::Team& team_;
  train::Reporter reporter_;
  checkpoint::OpenMode mode_ = checkpoint::OpenMode::kFresh;
  std::unique_ptr<checkpoint::SaveRoot> root_;  // the first worker's, where something is saved
  run::Session session_;
  run::RunStart start_;
  std::optional<StopSignal> signal_;
  std::unique_ptr<run::StopControl> stop_;
  std::unique_ptr<run::SteppedRun> run_;  // the last: it uses the others
};

}  // namespace regatta::binding
