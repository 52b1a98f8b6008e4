// Where a run begins: at the first batch, after an earlier run's last epoch, or in the middle of one; for all workers
// of a job alike, as the first one has found it. Thread-safety: plain values; FindRunStart is called once, by the main
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/step.h"
#include "checkpoint/save_root.h"
#include "run/best_epoch.h"
#include "run/team.h"
#include "run/worker_places.h"
#include "train/report.h"
#include "worker/job.h"

namespace regatta::worker {

// The blob of a save within an epoch: what one process, or the first worker, has counted of it.
inline constexpr char kMeterBlob[] = "pass_metrics";

struct RunStart {
  uint64_t epoch = 0;
  uint64_t first_step = 0;      // of the epoch
  run::WorkerPlaces places;     // of a job that resumes in the middle of the epoch
  base::DataPosition position;  // this worker's
  std::string meter;            // what it has counted of the epoch; "" = nothing
  // The first worker's alone:
  std::optional<uint64_t> unvalidated;  // the epoch whose save the run resumes from
  std::optional<run::BestEpoch> best;
};

// Fills the model from an earlier run's save in `root` (--resume) or from runner.model_init_path. `root` is the first
// worker's, null in the others; `settings_hash` says of this worker's data which batch is batch k.
absl::StatusOr<RunStart> FindRunStart(const Job& job, run::Team& team, checkpoint::SaveRoot* root,
                                      uint64_t settings_hash, train::Reporter& reporter);

}  // namespace regatta::worker
