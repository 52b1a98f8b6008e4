#include "run/epoch_loop.h"

#include <glog/logging.h>

#include <utility>

#include "run/epoch_pass.h"
#include "run/meter_merge.h"

namespace regatta::run {

EpochLoop::EpochLoop(const EpochLoopParts& parts, const EpochLoopOptions& options, const RunStart& start)
    : parts_(parts),
      options_(options),
      team_(parts.session.team()),
      unvalidated_(start.unvalidated),
      returns_(parts.session.returns()),
      validation_(team_,
                  {.trainer = parts.validator,
                   .spec = parts.spec,
                   .dataset = parts.validation,
                   .root = parts.root,
                   .reporter = parts.reporter,
                   .early_stop = options.early_stop,
                   .signal = [&stop = parts.stop] { return stop.signal(); }},
                  start.best),
      saves_(parts.session, validation_, options.settings_hash, parts.root, parts.model, parts.add_state),
      checkpoints_(parts.session, parts.stop, saves_, options.checkpoints, options.servers) {
  if (epoch() > start.epoch) finished_ = epoch() - 1;
  if (epoch() == start.epoch && !parts.session.over()) restored_meter_ = start.meter;
}

absl::StatusOr<RunEnd> EpochLoop::Run() {
  absl::StatusOr<RunEnd> end = RunEpochs();
  if (const absl::Status written = checkpoints_.Finish(); end.ok() && !written.ok()) end = written;
  if (!end.ok()) {
    saves_.MarkInterrupted().IgnoreError();  // the error at hand matters more
    return end;
  }
  if (end->kind == RunEnd::Kind::kFinished) RETURN_IF_ERROR(saves_.MarkFinished());
  return end;
}

// An epoch that was over before this process came is neither trained nor saved again.
absl::StatusOr<RunEnd> EpochLoop::RunEpochs() {
  Session& session = parts_.session;
  ASSIGN_OR_RETURN(Validation::After next, validation_.Validate(rounds::ValidatedResumed(), unvalidated_));
  if (finished_.has_value()) {  // which epoch is the best so far
    ASSIGN_OR_RETURN(next, validation_.Validate(rounds::ValidatedEpoch(*finished_), finished_));
  }
  if (epoch() >= options_.epochs && next != ValidatedMessage::STOPPED)
    parts_.reporter.Note(absl::StrCat("nothing to train: ", epoch(), " of ", options_.epochs, " epochs are done"));
  while (epoch() < options_.epochs && next == ValidatedMessage::GO_ON) {
    uint64_t batches = 0;
    if (!session.over()) {
      ASSIGN_OR_RETURN(const train::PassEnd end, RunPass());
      ASSIGN_OR_RETURN(const EndMessage all, session.EndPass(parts_.stop.EndOf(end)));
      if (all.stopped()) return alone() ? StopAlone(end) : StopTogether(end, all);
      RETURN_IF_ERROR(FinishEpoch(end));
      batches = end.position.low;
    }
    ASSIGN_OR_RETURN(next, validation_.Validate(rounds::ValidatedEpoch(epoch()), epoch()));
    RETURN_IF_ERROR(session.FinishEpoch(batches));
  }
  return next == ValidatedMessage::STOPPED ? StopUnvalidated() : RunEnd{};
}

absl::StatusOr<train::PassEnd> EpochLoop::RunPass() {
  const Session& session = parts_.session;
  meter_ = std::make_unique<train::PassMeter>(epoch(), parts_.spec);
  if (!restored_meter_.empty()) RETURN_IF_ERROR(meter_->Restore(restored_meter_));
  restored_meter_.clear();
  parts_.observer.BeginPass(epoch());
  checkpoints_.BeginEpoch(*meter_);
  if (std::exchange(returns_, false)) RETURN_IF_ERROR(checkpoints_.ComeBack());
  EpochPass pass(epoch(), *meter_, checkpoints_, parts_.stop, parts_.observer);
  ASSIGN_OR_RETURN(train::PassEnd end, parts_.train_pass(session.position(), session.first_step(), pass));
  parts_.observer.EndPass();
  return end;
}

// The first worker's meter becomes the job's.
absl::Status EpochLoop::MergeMeters() {
  if (alone()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto meters, parts_.session.GatherMetrics(meter_->Serialize()));
  if (!team_.chief()) return absl::OkStatus();
  const bool counted = team_.Completed(rounds::MetricsOf(rounds::EpochName(epoch())));  // by its predecessor
  return run::MergeMeters(meters, counted ? std::nullopt : std::optional<int>(0), *meter_);
}

absl::Status EpochLoop::FinishEpoch(const train::PassEnd& end) {
  RETURN_IF_ERROR(MergeMeters());
  parts_.observer.EpochTrained(meter_->Epoch("epoch"));
  absl::Status saved = checkpoints_.Finish();
  const auto round = rounds::SavedEpoch(epoch());
  if (saves_.writes() && saved.ok() && !team_.Completed(round)) saved = saves_.SaveEpoch(end.position);
  RETURN_IF_ERROR(AllOk(team_, round, saved));
  checkpoints_.Saved();
  return absl::OkStatus();
}

absl::StatusOr<RunEnd> EpochLoop::StopAlone(const train::PassEnd& end) {
  const absl::Status& memory = parts_.stop.memory();
  const int signal = parts_.stop.signal();
  if (saves_.writes()) {
    RETURN_IF_ERROR(saves_.SaveAt(end.position, *meter_));
    RETURN_IF_ERROR(saves_.MarkInterrupted());
  }
  parts_.reporter.Note(absl::StrCat(!memory.ok()  ? "out of memory"
                                    : signal != 0 ? "stopped"
                                                  : "runner.max_minutes is over",
                                    " in epoch ", epoch(), " at batch ", end.position.low, "; ",
                                    saves_.writes() ? absl::StrCat("saved, ", options_.how_to_resume)
                                                    : "nothing is saved, because the run has no folder for saves"));
  RETURN_IF_ERROR(memory);
  if (signal != 0) return RunEnd{RunEnd::Kind::kStopped, signal};
  return RunEnd{RunEnd::Kind::kOutOfTime};
}

// The servers' model stands in the middle of an epoch, and so does every worker, each at a step of its own.
absl::StatusOr<RunEnd> EpochLoop::StopTogether(const train::PassEnd& end, const EndMessage& all) {
  ASSIGN_OR_RETURN(const auto payloads,
                   AllGather(team_, rounds::StoppedIn(epoch()),
                             EncodePlace(saves_.PlaceAt(end.position, *meter_, RunSaves::MeterSize::kWhole))));
  absl::Status saved;
  if (saves_.writes()) {
    saved = SaveStopped(payloads);
    if (!saved.ok()) LOG(ERROR) << "not saved: " << saved.message();
  }
  RETURN_IF_ERROR(AllOk(team_, rounds::SavedWhereStopped(epoch()), saved));
  RETURN_IF_ERROR(parts_.stop.memory());
  if (all.signal() != 0) return RunEnd{RunEnd::Kind::kStopped, static_cast<int>(all.signal())};
  return RunEnd{all.out_of_time() ? RunEnd::Kind::kOutOfTime : RunEnd::Kind::kGivenUp};
}

absl::Status EpochLoop::SaveStopped(const std::map<int, Bytes>& payloads) {
  RETURN_IF_ERROR(checkpoints_.Finish());
  WorkerPlaces places;
  for (const auto& [rank, payload] : payloads) {
    ASSIGN_OR_RETURN(places[rank], DecodePlace(payload));
  }
  if (places.size() == static_cast<size_t>(team_.size())) {
    RETURN_IF_ERROR(saves_.SaveAt(places, *meter_));
    parts_.reporter.Note(absl::StrCat("stopped in epoch ", epoch(), ", ", AllBatches(places), " batches of ",
                                      places.size(), " workers into it; saved, ", options_.how_to_resume));
  } else {
    parts_.reporter.Note(absl::StrCat("stopped in epoch ", epoch(),
                                      "; a worker was lost, so the save before it stays the "
                                      "newest; ",
                                      options_.how_to_resume));
  }
  return saves_.MarkInterrupted();
}

// The epoch is saved; only its validation is missing, and a resume begins with it.
absl::StatusOr<RunEnd> EpochLoop::StopUnvalidated() {
  if (saves_.writes()) {
    RETURN_IF_ERROR(saves_.MarkInterrupted());
    parts_.reporter.Note(
        absl::StrCat("stopped while validating epoch ", epoch() - 1, ", which is saved; ", options_.how_to_resume));
  }
  return RunEnd{RunEnd::Kind::kStopped, validation_.signal()};
}

}  // namespace regatta::run
