#include "run/run_start.h"

#include <algorithm>

#include "checkpoint/save_list.h"
#include "run/rounds.h"

namespace regatta::run {
namespace {

absl::Status WarmStart(const RunOrigin& origin, checkpoint::ModelStore& model, train::Reporter& reporter) {
  if (origin.warm_start.empty()) return absl::OkStatus();
  const auto load = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string folder, checkpoint::ResolveSave(origin.warm_start));
    ASSIGN_OR_RETURN(const checkpoint::CheckpointReader reader, checkpoint::CheckpointReader::Open(folder));
    if (const auto& saved = reader.manifest().run.model; saved.has_value())
      RETURN_IF_ERROR(base::Annotate(checkpoint::CheckSameModel(*saved, origin.identity), folder));
    RETURN_IF_ERROR(model.LoadFrom(reader, checkpoint::LoadKind::kTraining));
    reporter.Note(absl::StrCat("warm start: weights and optimizer state from ", folder, ", ",
                               reader.manifest().TotalRows(), " rows"));
    return absl::OkStatus();
  };
  return base::Annotate(load(), "runner.model_init_path");
}

// Of a save that workers made in the middle of an epoch, each somewhere in its own part of the data.
absl::Status CheckPlaces(const WorkerPlaces& places, const RunOrigin& origin, int workers, uint64_t epoch,
                         const std::string& folder) {
  if (places.empty())
    return absl::FailedPreconditionError(absl::StrCat(folder, " was saved by one process in the middle of epoch ",
                                                      epoch,
                                                      "; resume it in one process, or start anew with --overwrite"));
  if (!origin.alone && places.size() == static_cast<size_t>(workers)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " was saved by ", places.size(), " workers in the middle of epoch ", epoch,
      ", each somewhere in its own part of the data, and here ",
      origin.alone ? "is one process without servers" : absl::StrCat("are ", workers), ". Resume it with ",
      places.size(), " (regatta launch --worker_num=", places.size(), "), or start anew with --overwrite"));
}

// What the first worker, or one process, finds in its saves.
absl::StatusOr<RunStart> Restore(const RunOrigin& origin, int workers, checkpoint::SaveRoot& root,
                                 checkpoint::ModelStore& model, train::Reporter& reporter) {
  ASSIGN_OR_RETURN(const auto resumed, root.LoadNewest(model));
  if (!resumed.has_value()) {
    reporter.Note(absl::StrCat("resuming: ", root.path(), " holds no save yet, so the run begins anew"));
    RETURN_IF_ERROR(WarmStart(origin, model, reporter));
    return RunStart{};
  }
  const checkpoint::RunState& state = resumed->run;
  const std::string folder = root.FolderOf(resumed->name);
  RunStart start;
  start.folder = folder;
  start.best = BestFrom(state);
  if (state.epoch_state == checkpoint::EpochState::kFinished) {
    start.epoch = state.epoch + 1;
    start.first_step = state.step;
    start.position.pass = start.epoch;
    start.unvalidated = state.epoch;
    reporter.Note(absl::StrCat("resuming after epoch ", state.epoch, " from ", folder));
    return start;
  }
  start.epoch = state.epoch;
  ASSIGN_OR_RETURN(start.places, PlacesFrom(state));
  if (!origin.alone || !start.places.empty()) {
    RETURN_IF_ERROR(CheckPlaces(start.places, origin, workers, state.epoch, folder));
    start.first_step = state.step - std::min(state.step, MostBatches(start.places));
    reporter.Note(absl::StrCat("resuming epoch ", start.epoch, " from ", folder, ", ", AllBatches(start.places),
                               " batches of ", start.places.size(), " workers into it"));
    return start;
  }
  if (state.settings_hash != origin.settings_hash)
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " was saved in the middle of epoch ", state.epoch,
                     ", and the files, batch size, seed or reader have changed since: batch ", state.position.low,
                     " is not the same batch any more. Put them back, or start anew with --overwrite"));
  start.position = state.position;
  start.first_step = state.step - std::min(state.step, state.position.batches());
  if (auto meter = state.blobs.find(kMeterBlob); meter != state.blobs.end()) start.meter = meter->second;
  reporter.Note(absl::StrCat("resuming epoch ", start.epoch, " at batch ", start.position.low, " from ", folder));
  return start;
}

// As the first worker tells it.
StartMessage MessageOf(const RunStart& start) {
  StartMessage message;
  message.set_epoch(start.epoch);
  message.set_first_step(start.first_step);
  if (start.unvalidated.has_value()) message.set_unvalidated(*start.unvalidated);
  PutBest(start.best, message);
  message.set_places(EncodePlaces(start.places));
  message.set_folder(start.folder);
  return message;
}

// Everybody begins where the first worker does; one that replaces the first gets what that one found.
absl::StatusOr<RunStart> ShareStart(Team& team, const absl::StatusOr<RunStart>& found) {
  const auto message =
      Broadcast(team, rounds::StartAt(), found.ok() ? absl::StatusOr<StartMessage>(MessageOf(*found)) : found.status());
  RETURN_IF_ERROR(found.status());
  RETURN_IF_ERROR(message.status());
  RunStart start;
  start.epoch = message->epoch();
  start.first_step = message->first_step();
  ASSIGN_OR_RETURN(start.places, DecodePlaces(message->places()));
  start.folder = message->folder();
  start.position = found->position;
  start.meter = found->meter;
  if (team.chief()) {
    if (message->has_unvalidated()) start.unvalidated = message->unvalidated();
    start.best = BestFrom(*message);
  }
  return start;
}

// In the middle of an epoch every worker goes on where it was itself.
absl::Status TakePlace(int rank, uint64_t settings_hash, RunStart& start) {
  if (start.places.empty()) return absl::OkStatus();
  const auto mine = start.places.find(rank);
  if (mine == start.places.end()) return absl::InternalError("the save does not say where this worker was");
  if (mine->second.settings_hash != settings_hash)
    return absl::FailedPreconditionError(absl::StrCat(
        "the save is of the middle of epoch ", start.epoch,
        ", and this worker's files, batch size, seed or reader have changed since: batch ", mine->second.position.low,
        " is not the same batch any more. Put them back, or start anew with --overwrite"));
  start.position = mine->second.position;
  start.meter = mine->second.meter;
  return absl::OkStatus();
}

// What the first worker, or one process, finds. `root` may be null unless it resumes.
absl::StatusOr<RunStart> FindHere(const RunOrigin& origin, int workers, checkpoint::SaveRoot* root,
                                  checkpoint::ModelStore& model, train::Reporter& reporter) {
  if (origin.resume) return Restore(origin, workers, *root, model, reporter);
  RETURN_IF_ERROR(WarmStart(origin, model, reporter));
  return RunStart{};
}

}  // namespace

absl::StatusOr<RunStart> FindRunStart(const RunOrigin& origin, Team& team, checkpoint::SaveRoot* root,
                                      checkpoint::ModelStore& model, train::Reporter& reporter) {
  const bool finds = team.chief() && !team.Completed(rounds::StartAt());
  ASSIGN_OR_RETURN(RunStart start, ShareStart(team, finds ? FindHere(origin, team.size(), root, model, reporter)
                                                          : absl::StatusOr<RunStart>(RunStart{})));
  if (!origin.alone)
    RETURN_IF_ERROR(AllOk(team, rounds::Places(), TakePlace(team.rank(), origin.settings_hash, start)));
  return start;
}

}  // namespace regatta::run
