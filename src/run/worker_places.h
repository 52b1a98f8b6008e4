// Where each worker of a job is in its data: what a checkpoint within an epoch holds besides the model, and what
// workers bring to the barrier at which it is taken.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/step.h"
#include "checkpoint/run_state.h"

namespace regatta::run {

struct WorkerPlace {
  base::DataPosition position;
  uint64_t settings_hash = 0;  // of what decides which batch is batch k of this worker
  std::string meter;           // PassMeter::Serialize; "" = not kept

  uint64_t batches() const { return position.batches(); }
};

using WorkerPlaces = std::map<int, WorkerPlace>;  // by rank

// Of one worker, and of all.
std::string EncodePlace(const WorkerPlace& place);
absl::StatusOr<WorkerPlace> DecodePlace(std::string_view bytes);
std::string EncodePlaces(const WorkerPlaces& places);
absl::StatusOr<WorkerPlaces> DecodePlaces(std::string_view bytes);

// As a save of a job in the middle of an epoch has them; PlacesFrom gives none where it is of one process.
void PutPlaces(const WorkerPlaces& places, checkpoint::RunState& run);
absl::StatusOr<WorkerPlaces> PlacesFrom(const checkpoint::RunState& run);

uint64_t MostBatches(const WorkerPlaces& places);
uint64_t AllBatches(const WorkerPlaces& places);

}  // namespace regatta::run
