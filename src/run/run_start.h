// Where a run begins: at the first batch, after an earlier run's last epoch, or in the middle of one; for all workers
// of a job alike, as the first one has found it.
// Thread-safety: plain values; FindRunStart is called once, by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/step.h"
#include "checkpoint/model_identity.h"
#include "checkpoint/model_store.h"
#include "checkpoint/save_root.h"
#include "run/best_epoch.h"
#include "run/team.h"
#include "run/worker_places.h"
#include "train/report.h"

namespace regatta::run {

// The blob of a save within an epoch: what one process, or the first worker, has counted of it.
inline constexpr char kMeterBlob[] = "pass_metrics";

struct RunStart {
  uint64_t epoch = 0;
  uint64_t first_step = 0;      // of the epoch
  WorkerPlaces places;          // of a job that resumes in the middle of the epoch
  base::DataPosition position;  // this worker's
  std::string meter;            // what it has counted of the epoch; "" = nothing
  std::string folder;           // of the save that the run resumes from, on the first worker's disk; "" = none
  // The first worker's alone:
  std::optional<uint64_t> unvalidated;  // the epoch whose save the run resumes from
  std::optional<BestEpoch> best;
};

// What a run may begin with.
struct RunOrigin {
  bool resume = false;     // --resume: where the newest save of the run is
  std::string warm_start;  // a save, or a folder of saves, whose model a run that begins anew starts with; "" = none
  bool alone = true;       // one process without servers
  checkpoint::ModelIdentity identity;
  uint64_t settings_hash = 0;  // says of this worker's data which batch is batch k
};

// Fills the model from an earlier run's save in `root`, or from origin.warm_start. `root` is the first worker's, null
// in the others. The reporter notes which save it was.
absl::StatusOr<RunStart> FindRunStart(const RunOrigin& origin, Team& team, checkpoint::SaveRoot* root,
                                      checkpoint::ModelStore& model, train::Reporter& reporter);

}  // namespace regatta::run
