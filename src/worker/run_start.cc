#include "worker/run_start.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "checkpoint/save_list.h"
#include "worker/number_text.h"

namespace regatta::worker {
namespace {

constexpr char kStartAt[] = "start at";

absl::Status WarmStart(const Job& job, train::Reporter& reporter) {
  const settings::RunnerOptions& runner = job.run.runner;
  if (runner.model_init_path.empty()) return absl::OkStatus();
  const std::string path =
      runner.last_epoch >= 0 ? absl::StrCat(runner.model_init_path, "/", runner.last_epoch) : runner.model_init_path;
  const auto load = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string folder, checkpoint::ResolveSave(path));
    ASSIGN_OR_RETURN(const checkpoint::CheckpointReader reader, checkpoint::CheckpointReader::Open(folder));
    if (const auto& saved = reader.manifest().run.model; saved.has_value())
      RETURN_IF_ERROR(base::Annotate(checkpoint::CheckSameModel(*saved, job.identity()), folder));
    RETURN_IF_ERROR(job.store().LoadFrom(reader, checkpoint::LoadKind::kTraining));
    reporter.Note(absl::StrCat("warm start: weights and optimizer state from ", folder, ", ",
                               reader.manifest().TotalRows(), " rows"));
    return absl::OkStatus();
  };
  return base::Annotate(load(), "runner.model_init_path");
}

// Of a save that workers made in the middle of an epoch, each somewhere in its own part of the data.
absl::Status CheckPlaces(const WorkerPlaces& places, const fleet::Team& team, uint64_t epoch,
                         const std::string& folder) {
  if (places.empty())
    return absl::FailedPreconditionError(absl::StrCat(folder, " was saved by one process in the middle of epoch ",
                                                      epoch,
                                                      "; resume it in one process, or start anew with --overwrite"));
  if (!team.alone() && places.size() == static_cast<size_t>(team.size())) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " was saved by ", places.size(), " workers in the middle of epoch ", epoch,
      ", each somewhere in its own part of the data, and here ",
      team.alone() ? "is one process without servers" : absl::StrCat("are ", team.size()), ". Resume it with ",
      places.size(), " (regatta launch --worker_num=", places.size(), "), or start anew with --overwrite"));
}

// What the first worker, or one process, finds.
absl::StatusOr<RunStart> Restore(const Job& job, const fleet::Team& team, checkpoint::SaveRoot& root,
                                 uint64_t settings_hash, train::Reporter& reporter) {
  if (!job.args.resume) {
    RETURN_IF_ERROR(WarmStart(job, reporter));
    return RunStart{};
  }
  ASSIGN_OR_RETURN(const auto resumed, root.LoadNewest(job.store()));
  if (!resumed.has_value()) {
    reporter.Note(absl::StrCat("resuming: ", root.path(), " holds no save yet, so the run begins anew"));
    RETURN_IF_ERROR(WarmStart(job, reporter));
    return RunStart{};
  }
  const checkpoint::RunState& run = resumed->run;
  const std::string folder = root.FolderOf(resumed->name);
  RunStart start;
  start.best = BestFrom(run);
  if (run.epoch_state == checkpoint::EpochState::kFinished) {
    start.epoch = run.epoch + 1;
    start.first_step = run.step;
    start.position.pass = start.epoch;
    start.unvalidated = run.epoch;
    reporter.Note(absl::StrCat("resuming after epoch ", run.epoch, " from ", folder));
    return start;
  }
  start.epoch = run.epoch;
  ASSIGN_OR_RETURN(start.places, PlacesFrom(run));
  if (!team.alone() || !start.places.empty()) {
    RETURN_IF_ERROR(CheckPlaces(start.places, team, run.epoch, folder));
    start.first_step = run.step - std::min(run.step, MostBatches(start.places));
    reporter.Note(absl::StrCat("resuming epoch ", start.epoch, " from ", folder, ", ", AllBatches(start.places),
                               " batches of ", start.places.size(), " workers into it"));
    return start;
  }
  if (run.settings_hash != settings_hash)
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " was saved in the middle of epoch ", run.epoch,
                     ", and the files, batch size, seed or reader have changed since: batch ", run.position.low,
                     " is not the same batch any more. Put them back, or start anew with --overwrite"));
  start.position = run.position;
  start.first_step = run.step - std::min(run.step, run.position.low + std::popcount(run.position.window));
  if (auto meter = run.blobs.find(kMeterBlob); meter != run.blobs.end()) start.meter = meter->second;
  reporter.Note(absl::StrCat("resuming epoch ", start.epoch, " at batch ", start.position.low, " from ", folder));
  return start;
}

// As the first worker tells it: numbers on a line of their own, and the places.
std::string EncodeStart(const RunStart& start) {
  const std::array<uint64_t, 2> best = NumbersOf(start.best);
  const uint64_t numbers[] = {start.epoch, start.first_step, start.unvalidated.has_value() ? *start.unvalidated + 1 : 0,
                              best[0], best[1]};
  return absl::StrCat(FormatNumbers(numbers), "\n", EncodePlaces(start.places));
}

absl::StatusOr<RunStart> DecodeStart(std::string_view text) {
  const size_t line = std::min(text.find('\n'), text.size() - 1);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ParseNumbers(text.substr(0, line), 5));
  RunStart start;
  start.epoch = numbers[0];
  start.first_step = numbers[1];
  if (numbers[2] > 0) start.unvalidated = numbers[2] - 1;
  start.best = BestOf(std::span<const uint64_t>(numbers).subspan<3, 2>());
  ASSIGN_OR_RETURN(start.places, DecodePlaces(text.substr(line + 1)));
  return start;
}

// Everybody begins where the first worker does; one that comes in the first's place hears what that one found.
absl::StatusOr<RunStart> ShareStart(fleet::Team& team, const absl::StatusOr<RunStart>& found) {
  const absl::StatusOr<std::string> told =
      team.Broadcast(kStartAt, found.ok() ? absl::StatusOr<std::string>(EncodeStart(*found)) : found.status());
  RETURN_IF_ERROR(found.status());
  RETURN_IF_ERROR(told.status());
  ASSIGN_OR_RETURN(RunStart start, DecodeStart(*told));
  start.position = found->position;
  start.meter = found->meter;
  if (!team.chief()) {
    start.unvalidated.reset();
    start.best.reset();
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

}  // namespace

absl::StatusOr<RunStart> FindRunStart(const Job& job, fleet::Team& team, checkpoint::SaveRoot* root,
                                      uint64_t settings_hash, train::Reporter& reporter) {
  const bool finds = team.chief() && !team.Completed(kStartAt);
  ASSIGN_OR_RETURN(RunStart start, ShareStart(team, finds ? Restore(job, team, *root, settings_hash, reporter)
                                                          : absl::StatusOr<RunStart>(RunStart{})));
  if (!team.alone()) RETURN_IF_ERROR(team.AllOk("places", TakePlace(job.fleet->worker_index(), settings_hash, start)));
  return start;
}

}  // namespace regatta::worker
