#include "run/team_checkpoint.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/elapsed.h"
#include "base/failpoint.h"

namespace regatta::run {
namespace {

constexpr double kClose = 0.02;    // of the period: as close as barriers of sync come to the moment
constexpr double kAgain = 0.1;     // of the period, after one by time that was left out
constexpr uint64_t kGrowth = 4;    // of the batches between two of them
constexpr double kStopPoll = 0.5;  // seconds between barriers at which sync may stop

// What costs a checkpoint and not the run: a full disk, a server that went away or is busy with its own.
bool CostsOneCheckpoint(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct TeamCheckpoint::Gathered {
  WorkerPlaces places;
  bool anybody_paused = false;
  bool stop = false;
  Due due = ArrivalMessage::NO;
};

TeamCheckpoint::TeamCheckpoint(Team& team, const CheckpointPace& pace, const StepPace& steps,
                               BeginSnapshot begin_snapshot, Prepare prepare)
    : team_(team),
      pace_(pace),
      together_(steps.together),
      batches_a_push_(static_cast<uint64_t>(std::max(steps.batches_a_push, 1))),
      begin_snapshot_(std::move(begin_snapshot)),
      prepare_(std::move(prepare)) {}

TeamCheckpoint::~TeamCheckpoint() {
  if (const absl::Status status = Finish(); !status.ok()) LOG(ERROR) << "checkpoint: " << status.message();
}

uint64_t TeamCheckpoint::WholePushes(uint64_t batches) const {
  return (std::max<uint64_t>(batches, 1) + batches_a_push_ - 1) / batches_a_push_ * batches_a_push_;
}

void TeamCheckpoint::BeginEpoch(uint64_t epoch) {
  epoch_ = epoch;
  number_ = since_barrier_ = barrier_at_ = 0;
  plan_ = 1;
  stop_agreed_ = false;
}

// A worker that comes too early to a barrier of async waits alone; one that comes too late keeps everybody.
absl::Status TeamCheckpoint::ComeBack(uint64_t began_at, const WorkerPlace& mine) {
  if (!has_barriers()) return absl::OkStatus();
  since_barrier_ = since_snapshot_ = mine.batches() - std::min(began_at, mine.batches());
  AfterBarrier after = AfterBarrier::kGoOn;
  const std::optional<uint64_t> last = team_.resume_point()->LastRound(rounds::CheckpointArrival(epoch_, number_).name);
  if (last.has_value()) {
    number_ = *last;
    ASSIGN_OR_RETURN(after, WaitAtBarrier(Attendance::kPaused, StopRequest::kNone, mine));
  } else if (pace_.minutes > 0) {
    last_snapshot_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(60 * pace_.minutes));
  }
  while (after == AfterBarrier::kGoOn && since_barrier_ > 0 && IsDue(0)) {
    ASSIGN_OR_RETURN(after, WaitAtBarrier(Attendance::kPaused, StopRequest::kNone, mine));
  }
  return absl::OkStatus();
}

void TeamCheckpoint::Saved() {
  since_snapshot_ = since_barrier_ = 0;
  last_snapshot_ = last_barrier_ = Clock::now();
}

// In sync the threads of a worker have begun the batches of one push, and none of the next, when the first of them is
// done: from then on they pause behind it.
bool TeamCheckpoint::PauseAfterStep() {
  ++since_barrier_;
  ++since_snapshot_;
  return has_barriers() && IsDue(batches_a_push_ - 1);
}

// `begun` batches of other threads are on their way.
bool TeamCheckpoint::IsDue(uint64_t begun) {
  if (!sync())
    return (pace_.steps > 0 && since_snapshot_ >= pace_.steps) ||
           (pace_.minutes > 0 && base::SecondsSince(last_snapshot_) >= 60 * pace_.minutes);
  return (pace_.steps > 0 && since_snapshot_ + begun >= WholePushes(pace_.steps)) ||
         (plans() && since_barrier_ + begun >= WholePushes(plan_));
}

absl::StatusOr<AfterBarrier> TeamCheckpoint::WaitAtBarrier(Attendance attendance, StopRequest stop,
                                                           const WorkerPlace& mine) {
  if (!has_barriers()) return AfterBarrier::kAllEnded;
  const bool by_steps = pace_.steps > 0 && since_snapshot_ >= (sync() ? WholePushes(pace_.steps) : pace_.steps);
  const Due due = attendance == Attendance::kEnded ? ArrivalMessage::NO
                  : by_steps                       ? ArrivalMessage::STEPS
                  : sync()                         ? ArrivalMessage::NO
                                                   : ArrivalMessage::TIME;
  ASSIGN_OR_RETURN(const Gathered gathered, Gather(attendance, stop, mine, due));
  if (!gathered.anybody_paused) return AfterBarrier::kAllEnded;
  if (gathered.stop) {  // and then the job is saved as it is here
    stop_agreed_ = true;
    return AfterBarrier::kStop;
  }
  const auto round = rounds::CheckpointVerdict(epoch_, number_);
  Verdict verdict;
  if (team_.chief() && !team_.Completed(round)) {
    verdict = Judge(gathered);
    if (verdict.due != ArrivalMessage::NO) {
      const absl::Status begun = Begin(gathered, verdict.due);
      if (!begun.ok()) {
        snapshot_.reset();
        if (!CostsOneCheckpoint(begun)) return base::Annotate(begun, "checkpoint");
        LOG(ERROR) << "checkpoint skipped, training goes on: " << begun.message();
        verdict.skipped = true;
      }
    }
  }
  VerdictMessage proposed;
  proposed.set_what(verdict.due == ArrivalMessage::NO ? VerdictMessage::NOT_DUE
                    : verdict.skipped                 ? VerdictMessage::LEFT_OUT
                                                      : VerdictMessage::SNAPSHOT);
  proposed.set_plan(verdict.plan);
  proposed.set_since_snapshot(since_snapshot_);
  ASSIGN_OR_RETURN(const VerdictMessage said, Broadcast(team_, round, proposed));
  plan_ = said.plan();
  last_barrier_ = Clock::now();
  barrier_at_ = MostBatches(gathered.places);
  // More than none where this process comes to the barrier again: in sync all count alike.
  const auto me = gathered.places.find(team_.rank());
  since_barrier_ = me == gathered.places.end() ? 0 : mine.batches() - std::min(mine.batches(), me->second.batches());
  since_snapshot_ = since_barrier_ + (said.what() == VerdictMessage::NOT_DUE ? said.since_snapshot() : 0);
  if (said.what() != VerdictMessage::NOT_DUE) last_snapshot_ = last_barrier_;
  if (said.what() == VerdictMessage::LEFT_OUT)
    last_snapshot_ -=
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>((1 - kAgain) * 60 * pace_.minutes));
  if (said.what() == VerdictMessage::SNAPSHOT) RETURN_IF_ERROR(Write(gathered.places, mine.meter));
  ++number_;
  return AfterBarrier::kGoOn;
}

absl::StatusOr<TeamCheckpoint::Gathered> TeamCheckpoint::Gather(Attendance attendance, StopRequest stop,
                                                                const WorkerPlace& mine, Due due) {
  ArrivalMessage arrival;
  arrival.set_ended(attendance == Attendance::kEnded);
  arrival.set_stop(stop == StopRequest::kStop);
  arrival.set_due(due);
  arrival.set_place(EncodePlace({mine.position, mine.settings_hash, ""}));
  ASSIGN_OR_RETURN(const auto arrivals, AllGather(team_, rounds::CheckpointArrival(epoch_, number_), arrival));
  Gathered gathered;
  for (const auto& [rank, theirs] : arrivals) {
    gathered.anybody_paused |= !theirs.ended();
    gathered.stop |= theirs.stop();
    gathered.due = std::max(gathered.due, theirs.due());
    ASSIGN_OR_RETURN(gathered.places[rank], DecodePlace(theirs.place()));
  }
  return gathered;
}

TeamCheckpoint::Verdict TeamCheckpoint::Judge(const Gathered& gathered) {
  if (!plans()) return {gathered.due, false, 1};
  if (pace_.minutes <= 0) return {gathered.due, false, PlanNext(gathered, kStopPoll)};
  const double left = 60 * pace_.minutes - base::SecondsSince(last_snapshot_);
  const Due due = std::max(gathered.due, left <= 0 ? ArrivalMessage::TIME : ArrivalMessage::NO);
  const double until = due == ArrivalMessage::NO ? left : 60 * pace_.minutes;
  // Half of the way that is left, and all of it where that is short.
  const double wanted = until < kClose * 60 * pace_.minutes ? until : until / 2;
  return {due, false, PlanNext(gathered, agrees_on_stops() ? std::min(wanted, kStopPoll) : wanted)};
}

// The batches of so many seconds.
uint64_t TeamCheckpoint::PlanNext(const Gathered& gathered, double seconds) {
  const uint64_t most = MostBatches(gathered.places);
  const double batches = static_cast<double>(std::max<uint64_t>(most - std::min(most, barrier_at_), 1));
  const double seconds_a_batch = std::max(base::SecondsSince(last_barrier_) / batches, 1e-6);
  return static_cast<uint64_t>(
      std::clamp(std::ceil(seconds / seconds_a_batch), 1.0, static_cast<double>(kGrowth * plan_)));
}

// Everybody waits meanwhile. What is asked for by steps is asked for of that step: it waits for the one before.
absl::Status TeamCheckpoint::Begin(const Gathered& gathered, Due due) {
  if (writing() && due == ArrivalMessage::TIME) return absl::UnavailableError("the one before is still being written");
  const bool late = writing();
  const auto before = Clock::now();
  RETURN_IF_ERROR(Finish());
  if (late)
    LOG(WARNING) << absl::StrFormat("checkpoint: training waited %.3f s for the one before to be written",
                                    base::SecondsSince(before));
  if (gathered.places.size() != static_cast<size_t>(team_.size()))
    return absl::UnavailableError("a worker was lost, and where it was in its data with it");
  RETURN_IF_ERROR(base::Failpoint("checkpoint.gathered"));
  const auto start = Clock::now();
  ASSIGN_OR_RETURN(snapshot_, begin_snapshot_((epoch_ << 32) + number_ + 1));
  LOG(INFO) << absl::StrFormat("checkpoint: snapshot in %.1f ms", base::SecondsSince(start) * 1e3);
  return base::Failpoint("checkpoint.begun");
}

// The state of the metrics is the larger part of what workers say, and servers keep what is said for a while: it comes
// where it is needed only.
absl::Status TeamCheckpoint::Write(WorkerPlaces places, const std::string& meter) {
  ASSIGN_OR_RETURN(const auto meters, AllGather(team_, rounds::CheckpointMetrics(epoch_, number_), meter));
  if (snapshot_ == nullptr) return absl::OkStatus();
  for (const auto& [rank, bytes] : meters) places[rank].meter = bytes;
  {
    base::MutexLock lock(mu_);
    writing_ = true;
  }
  writer_ = std::thread([this, snapshot = std::move(snapshot_), save = prepare_(places)]() mutable {
    absl::Status status = save(snapshot->model());
    snapshot.reset();
    base::MutexLock lock(mu_);
    written_ = std::move(status);
    writing_ = false;
  });
  return absl::OkStatus();
}

bool TeamCheckpoint::writing() {
  base::MutexLock lock(mu_);
  return writing_;
}

absl::Status TeamCheckpoint::Finish() {
  if (!writer_.joinable()) return absl::OkStatus();
  writer_.join();
  base::MutexLock lock(mu_);
  const absl::Status status = std::exchange(written_, absl::OkStatus());
  if (!CostsOneCheckpoint(status)) return base::Annotate(status, "checkpoint");
  LOG(ERROR) << "checkpoint skipped, training goes on: " << status.message();
  return absl::OkStatus();
}

}  // namespace regatta::run
