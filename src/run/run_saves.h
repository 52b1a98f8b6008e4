// The saves of a run: what they hold besides the model, and that they are written. The first worker has the save root
// and writes; the others bring where they are.
// Thread-safety: one thread, but for what Prepare returns, which one other thread may run; nothing is saved meanwhile.
// Invariant: the name of a save within an epoch counts the batches of all workers, so every one has another.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/status.h"
#include "base/step.h"
#include "checkpoint/model_store.h"
#include "checkpoint/run_state.h"
#include "checkpoint/save_root.h"
#include "run/session.h"
#include "run/team_checkpoint.h"
#include "run/validation.h"
#include "run/worker_places.h"
#include "train/pass_meter.h"

namespace regatta::run {

// Adds blobs to the state of a save: what the program that trains wants to find again. Called by the first worker,
// while no step is in flight.
using AddState = std::function<absl::Status(checkpoint::RunState& state)>;

class RunSaves {
 public:
  // `root` is null but in the first worker. `settings_hash` says of this worker's data which batch is batch k. `add`
  // may be null.
  RunSaves(const Session& session, const Validation& validation, uint64_t settings_hash, checkpoint::SaveRoot* root,
           checkpoint::ModelStore& model, AddState add)
      : session_(session),
        validation_(validation),
        settings_hash_(settings_hash),
        root_(root),
        model_(model),
        add_(std::move(add)) {}

  bool writes() const { return root_ != nullptr; }

  // What this worker brings to a save of the whole job. kSmall leaves a meter out that is large: servers keep for a
  // while what goes around with a checkpoint's barrier.
  enum class MeterSize : uint8_t { kWhole, kSmall };
  WorkerPlace PlaceAt(const base::DataPosition& position, const train::PassMeter& meter, MeterSize size) const;

  // ---- Where `writes`.
  // The epoch is done.
  absl::Status SaveEpoch(const base::DataPosition& position);
  // In the middle of the epoch: of one process, and of workers at `places`. `meter` is this process's.
  absl::Status SaveAt(const base::DataPosition& position, const train::PassMeter& meter);
  absl::Status SaveAt(const WorkerPlaces& places, const train::PassMeter& meter) {
    return Prepare(places, meter)(model_);
  }
  // The same of another store, such as a snapshot, later. The state is that of now.
  TeamCheckpoint::Save Prepare(const WorkerPlaces& places, const train::PassMeter& meter);

  // ---- Nothing where not `writes`.
  absl::Status MarkInterrupted() { return writes() ? root_->MarkInterrupted() : absl::OkStatus(); }
  absl::Status MarkFinished() { return writes() ? root_->MarkFinished() : absl::OkStatus(); }

 private:
  absl::StatusOr<checkpoint::RunState> StateAt(const base::DataPosition& position,
                                               checkpoint::EpochState epoch_state) const;

  const Session& session_;
  const Validation& validation_;
  const uint64_t settings_hash_;
  checkpoint::SaveRoot* const root_;
  checkpoint::ModelStore& model_;
  const AddState add_;
};

}  // namespace regatta::run
