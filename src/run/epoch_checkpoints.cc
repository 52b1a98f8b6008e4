#include "run/epoch_checkpoints.h"

#include <glog/logging.h>

#include "base/elapsed.h"

namespace regatta::run {

EpochCheckpoints::EpochCheckpoints(const Session& session, const StopControl& stop, RunSaves& saves,
                                   const CheckpointPace& pace, const std::optional<ServerCheckpoints>& servers)
    : session_(session), stop_(stop), saves_(saves), pace_(pace) {
  if (!servers.has_value()) return;
  team_ =
      std::make_unique<TeamCheckpoint>(session.team(), pace, servers->steps, servers->begin_snapshot,
                                       [this](const WorkerPlaces& places) { return saves_.Prepare(places, *meter_); });
}

void EpochCheckpoints::BeginEpoch(const train::PassMeter& meter) {
  meter_ = &meter;
  if (team_ != nullptr) team_->BeginEpoch(session_.epoch());
}

absl::Status EpochCheckpoints::ComeBack() {
  return team_->ComeBack(session_.began_at(),
                         saves_.PlaceAt(session_.position(), *meter_, RunSaves::MeterSize::kSmall));
}

bool EpochCheckpoints::PauseAfterStep() {
  if (team_ != nullptr) return team_->PauseAfterStep();
  ++steps_since_save_;
  return (pace_.steps > 0 && steps_since_save_ >= pace_.steps) ||
         (pace_.minutes > 0 && base::SecondsSince(last_save_) / 60 >= pace_.minutes);
}

StopRequest EpochCheckpoints::RequestHere() const {
  return stops_at_barrier() && stop_.requested() ? StopRequest::kStop : StopRequest::kNone;
}

absl::Status EpochCheckpoints::AtPause(const base::DataPosition& position) {
  if (team_ == nullptr) return SaveAlone(position);
  return team_
      ->WaitAtBarrier(Attendance::kPaused, RequestHere(),
                      saves_.PlaceAt(position, *meter_, RunSaves::MeterSize::kSmall))
      .status();
}

absl::Status EpochCheckpoints::SaveAlone(const base::DataPosition& position) {
  const absl::Status status = saves_.SaveAt(position, *meter_);
  Saved();
  if (!absl::IsResourceExhausted(status)) return base::Annotate(status, "checkpoint");
  LOG(ERROR) << "checkpoint skipped, training goes on: " << status.message();
  return absl::OkStatus();
}

absl::Status EpochCheckpoints::AtEnd(const base::DataPosition& position) {
  if (team_ == nullptr) return absl::OkStatus();
  const WorkerPlace here = saves_.PlaceAt(position, *meter_, RunSaves::MeterSize::kSmall);
  auto after = team_->stop_agreed() ? AfterBarrier::kStop : AfterBarrier::kGoOn;
  while (after == AfterBarrier::kGoOn) {
    ASSIGN_OR_RETURN(after, team_->WaitAtBarrier(Attendance::kEnded, RequestHere(), here));
  }
  return absl::OkStatus();
}

void EpochCheckpoints::Saved() {
  steps_since_save_ = 0;
  last_save_ = std::chrono::steady_clock::now();
  if (team_ != nullptr) team_->Saved();
}

absl::Status EpochCheckpoints::Finish() { return team_ != nullptr ? team_->Finish() : absl::OkStatus(); }

}  // namespace regatta::run
