#include "run/run_saves.h"

#include "run/run_start.h"

namespace regatta::run {
namespace {

constexpr size_t kSmallMeter = 64 << 10;

}  // namespace

WorkerPlace RunSaves::PlaceAt(const base::DataPosition& position, const train::PassMeter& meter, MeterSize size) const {
  WorkerPlace place{position, settings_hash_, ""};
  if (session_.team().chief()) return place;  // it writes its own meter
  place.meter = meter.Serialize();
  if (size == MeterSize::kSmall && place.meter.size() > kSmallMeter) place.meter.clear();
  return place;
}

absl::StatusOr<checkpoint::RunState> RunSaves::StateAt(const base::DataPosition& position,
                                                       checkpoint::EpochState epoch_state) const {
  checkpoint::RunState state;
  state.epoch = session_.epoch();
  state.epoch_state = epoch_state;
  state.position = position;
  state.step = session_.first_step() + position.batches();
  state.settings_hash = settings_hash_;
  PutBest(validation_.best(), state);
  if (add_ != nullptr) RETURN_IF_ERROR(add_(state));
  return state;
}

absl::Status RunSaves::SaveEpoch(const base::DataPosition& position) {
  ASSIGN_OR_RETURN(const checkpoint::RunState state, StateAt(position, checkpoint::EpochState::kFinished));
  return base::Annotate(root_->SaveEpoch(session_.epoch(), model_, state),
                        absl::StrCat("saving epoch ", session_.epoch()));
}

absl::Status RunSaves::SaveAt(const base::DataPosition& position, const train::PassMeter& meter) {
  ASSIGN_OR_RETURN(checkpoint::RunState state, StateAt(position, checkpoint::EpochState::kRunning));
  state.blobs[kMeterBlob] = meter.Serialize();
  return root_->SaveCheckpoint(model_, state);
}

TeamCheckpoint::Save RunSaves::Prepare(const WorkerPlaces& places, const train::PassMeter& meter) {
  auto state = StateAt({.pass = session_.epoch(), .low = AllBatches(places)}, checkpoint::EpochState::kRunning);
  if (!state.ok()) return [failed = state.status()](checkpoint::ModelStore&) { return failed; };
  state->step = session_.first_step() + MostBatches(places);
  WorkerPlaces kept = places;
  kept[0].meter = meter.Serialize();
  PutPlaces(kept, *state);
  return
      [this, state = *std::move(state)](checkpoint::ModelStore& model) { return root_->SaveCheckpoint(model, state); };
}

}  // namespace regatta::run
