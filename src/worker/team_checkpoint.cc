#include "worker/team_checkpoint.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/elapsed.h"
#include "base/failpoint.h"

namespace regatta::worker {
namespace {

constexpr double kClose = 0.02;    // of the period: as close as barriers of sync come to the moment
constexpr double kAgain = 0.1;     // of the period, after one by time that was left out
constexpr uint64_t kGrowth = 4;    // of the batches between two of them
constexpr double kStopPoll = 0.5;  // seconds between barriers at which sync may stop

// What the first worker says of a barrier.
constexpr char kNotDue[] = "not_due", kSnapshot[] = "cut", kLeftOut[] = "left_out";

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
  Due due = Due::kNo;
};

TeamCheckpoint::TeamCheckpoint(fleet::WorkerNode& worker, const CheckpointPace& pace, int batches_a_push,
                               Prepare prepare)
    : worker_(worker),
      team_(&worker),
      pace_(pace),
      batches_a_push_(static_cast<uint64_t>(std::max(batches_a_push, 1))),
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
  const std::optional<uint64_t> last = worker_.resume_point().LastRound(Name());
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
  const Due due = attendance == Attendance::kEnded ? Due::kNo : by_steps ? Due::kSteps : sync() ? Due::kNo : Due::kTime;
  ASSIGN_OR_RETURN(const Gathered gathered, Gather(attendance, stop, mine, due));
  if (!gathered.anybody_paused) return AfterBarrier::kAllEnded;
  if (gathered.stop) {  // and then the job is saved as it is here
    stop_agreed_ = true;
    return AfterBarrier::kStop;
  }
  const std::string made = absl::StrCat(Name(), " is made");
  Verdict verdict;
  if (team_.chief() && !team_.Completed(made, number_)) {
    verdict = Judge(gathered);
    if (verdict.due != Due::kNo) {
      const absl::Status begun = BeginSnapshot(gathered, verdict.due);
      if (!begun.ok()) {
        snapshot_.reset();
        if (!CostsOneCheckpoint(begun)) return base::Annotate(begun, "checkpoint");
        LOG(ERROR) << "checkpoint skipped, training goes on: " << begun.message();
        verdict.skipped = true;
      }
    }
  }
  const char* const what = verdict.due == Due::kNo ? kNotDue : verdict.skipped ? kLeftOut : kSnapshot;
  ASSIGN_OR_RETURN(const std::string told,
                   team_.Broadcast(made, absl::StrCat(what, " ", verdict.plan, " ", since_snapshot_), number_));
  const std::vector<std::string> words = absl::StrSplit(told, ' ');
  uint64_t chiefs_since_snapshot = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &plan_) || !absl::SimpleAtoi(words[2], &chiefs_since_snapshot))
    return absl::InternalError(absl::StrCat("worker 0 says '", told, "' of '", made, "'"));
  last_barrier_ = Clock::now();
  barrier_at_ = MostBatches(gathered.places);
  // More than none where this process comes to the barrier again: in sync all count alike.
  const auto me = gathered.places.find(worker_.rank());
  since_barrier_ = me == gathered.places.end() ? 0 : mine.batches() - std::min(mine.batches(), me->second.batches());
  since_snapshot_ = since_barrier_ + (words[0] == kNotDue ? chiefs_since_snapshot : 0);
  if (words[0] != kNotDue) last_snapshot_ = last_barrier_;
  if (words[0] == kLeftOut)
    last_snapshot_ -=
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>((1 - kAgain) * 60 * pace_.minutes));
  if (words[0] == kSnapshot) RETURN_IF_ERROR(Write(gathered.places, mine.meter));
  ++number_;
  return AfterBarrier::kGoOn;
}

absl::StatusOr<TeamCheckpoint::Gathered> TeamCheckpoint::Gather(Attendance attendance, StopRequest stop,
                                                                const WorkerPlace& mine, Due due) {
  const char marks[] = {attendance == Attendance::kPaused ? 'p' : 'e', stop == StopRequest::kStop ? 's' : 'g',
                        static_cast<char>('0' + static_cast<int>(due))};
  const WorkerPlace brought{mine.position, mine.settings_hash, ""};
  ASSIGN_OR_RETURN(const auto payloads,
                   team_.AllGather(Name(), std::string(marks, sizeof marks) + EncodePlace(brought), number_));
  Gathered gathered;
  for (const auto& [rank, payload] : payloads) {
    if (payload.size() < sizeof marks || payload[2] < '0' || payload[2] > '2')
      return absl::InternalError(absl::StrCat("worker ", rank, " brings ", payload.size(), " bytes to '", Name(), "'"));
    gathered.anybody_paused |= payload[0] == 'p';
    gathered.stop |= payload[1] == 's';
    gathered.due = std::max(gathered.due, static_cast<Due>(payload[2] - '0'));
    ASSIGN_OR_RETURN(gathered.places[rank], DecodePlace(std::string_view(payload).substr(sizeof marks)));
  }
  return gathered;
}

TeamCheckpoint::Verdict TeamCheckpoint::Judge(const Gathered& gathered) {
  if (!plans()) return {gathered.due, false, 1};
  if (pace_.minutes <= 0) return {gathered.due, false, PlanNext(gathered, kStopPoll)};
  const double left = 60 * pace_.minutes - base::SecondsSince(last_snapshot_);
  const Due due = std::max(gathered.due, left <= 0 ? Due::kTime : Due::kNo);
  const double until = due == Due::kNo ? left : 60 * pace_.minutes;
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
absl::Status TeamCheckpoint::BeginSnapshot(const Gathered& gathered, Due due) {
  if (writing() && due == Due::kTime) return absl::UnavailableError("the one before is still being written");
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
  ASSIGN_OR_RETURN(snapshot_, worker_.BeginSnapshot((epoch_ << 32) + number_ + 1));
  LOG(INFO) << absl::StrFormat("checkpoint: snapshot in %.1f ms", base::SecondsSince(start) * 1e3);
  return base::Failpoint("checkpoint.begun");
}

// The state of the metrics is the larger part of what workers say, and servers keep what is said for a while: it comes
// where it is needed only.
absl::Status TeamCheckpoint::Write(WorkerPlaces places, const std::string& meter) {
  ASSIGN_OR_RETURN(const auto meters, team_.AllGather(absl::StrCat(Name(), " counts"), meter, number_));
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

}  // namespace regatta::worker
