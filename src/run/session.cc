#include "run/session.h"

#include <glog/logging.h>

#include <algorithm>

namespace regatta::run {

// The predecessor's position is of the last pass that it began, and it had done all that comes before.
uint64_t Session::EpochOf(const Team& team, uint64_t first_epoch) {
  const client::ResumePoint* const resume_point = team.resume_point();
  return resume_point == nullptr ? first_epoch : std::max(first_epoch, resume_point->position.pass);
}

absl::Status Session::Begin(const SessionStart& start) {
  epoch_ = EpochOf(team_, start.epoch);
  first_step_ = start.first_step;
  if (epoch_ == start.epoch) position_ = start.position;
  position_.pass = epoch_;
  began_at_ = position_.batches();
  const client::ResumePoint* const resume_point = team_.resume_point();
  if (resume_point == nullptr) return absl::OkStatus();
  returns_ = true;
  if (epoch_ > start.epoch) {
    const auto round = rounds::StepsOf(rounds::EpochName(epoch_ - 1));
    if (!team_.Completed(round))
      return absl::FailedPreconditionError(
          absl::StrCat("the servers have forgotten '", round.name,
                       "': too many collective calls came after it. Start the job again from its last save"));
    ASSIGN_OR_RETURN(first_step_, AllReduceMax(team_, round, 0));
  }
  // The servers know of no batch if the predecessor was killed before it began the pass.
  if (resume_point->position.pass == epoch_ && resume_point->position.batches() > began_at_)
    position_ = resume_point->position;
  if (over()) {
    LOG(INFO) << "in the place of the worker at " << resume_point->predecessor << ": goes on after epoch " << epoch_;
  } else {
    LOG(INFO) << "in the place of the worker at " << resume_point->predecessor << ": goes on in epoch " << epoch_
              << " at batch " << position_.low << "; what that one had counted of the epoch's metrics is lost";
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<int, Bytes>> Session::GatherMetrics(const std::string& meter) {
  const auto round = rounds::MetricsOf(pass());
  if (over() && !team_.Completed(round)) return std::map<int, Bytes>{};
  return AllGather(team_, round, meter);
}

absl::Status Session::FinishEpoch(uint64_t batches) {
  ASSIGN_OR_RETURN(first_step_, AllReduceMax(team_, rounds::StepsOf(pass()), first_step_ + batches));
  ++epoch_;
  position_ = {.pass = epoch_};
  began_at_ = 0;
  returns_ = false;
  return absl::OkStatus();
}

}  // namespace regatta::run
