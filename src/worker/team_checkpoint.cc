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

constexpr double kClose = 0.02;    // of the period: as close as meetings of sync come to the moment
constexpr double kAgain = 0.1;     // of the period, after one by time that was left out
constexpr uint64_t kGrowth = 4;    // of the batches between two of them
constexpr double kStopLook = 0.5;  // seconds between meetings at which sync may stop

// What the first worker says of a meeting.
constexpr char kNotDue[] = "not_due", kCut[] = "cut", kLeftOut[] = "left_out";

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

struct TeamCheckpoint::Meeting {
  WorkerPlaces places;
  bool anybody_paused = false;
  bool stop = false;
  Due due = Due::kNo;
};

TeamCheckpoint::TeamCheckpoint(fleet::Worker& worker, const CheckpointPace& pace, int batches_a_push, Prepare prepare)
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
  number_ = since_meeting_ = met_at_ = 0;
  plan_ = 1;
  stop_agreed_ = false;
}

// A worker that comes too early to a meeting of async waits alone; one that comes too late keeps everybody.
absl::Status TeamCheckpoint::ComeBack(uint64_t began_at, const WorkerPlace& mine) {
  if (!meets()) return absl::OkStatus();
  since_meeting_ = since_cut_ = mine.batches() - std::min(began_at, mine.batches());
  AfterMeeting after = AfterMeeting::kGoOn;
  const std::optional<uint64_t> last = worker_.standing().LastRound(Name());
  if (last.has_value()) {
    number_ = *last;
    ASSIGN_OR_RETURN(after, Meet(Attendance::kPaused, StopWish::kNone, mine));
  } else if (pace_.minutes > 0) {
    last_cut_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(60 * pace_.minutes));
  }
  while (after == AfterMeeting::kGoOn && since_meeting_ > 0 && IsDue(0)) {
    ASSIGN_OR_RETURN(after, Meet(Attendance::kPaused, StopWish::kNone, mine));
  }
  return absl::OkStatus();
}

void TeamCheckpoint::Saved() {
  since_cut_ = since_meeting_ = 0;
  last_cut_ = last_meeting_ = Clock::now();
}

// In sync the threads of a worker have begun the batches of one push, and none of the next, when the first of them is
// done: from then on they pause behind it.
bool TeamCheckpoint::PauseAfterStep() {
  ++since_meeting_;
  ++since_cut_;
  return meets() && IsDue(batches_a_push_ - 1);
}

// `begun` batches of other threads are on their way.
bool TeamCheckpoint::IsDue(uint64_t begun) {
  if (!sync())
    return (pace_.steps > 0 && since_cut_ >= pace_.steps) ||
           (pace_.minutes > 0 && base::SecondsSince(last_cut_) >= 60 * pace_.minutes);
  return (pace_.steps > 0 && since_cut_ + begun >= WholePushes(pace_.steps)) ||
         (plans() && since_meeting_ + begun >= WholePushes(plan_));
}

absl::StatusOr<AfterMeeting> TeamCheckpoint::Meet(Attendance attendance, StopWish wish, const WorkerPlace& mine) {
  if (!meets()) return AfterMeeting::kAllEnded;
  const bool by_steps = pace_.steps > 0 && since_cut_ >= (sync() ? WholePushes(pace_.steps) : pace_.steps);
  const Due due = attendance == Attendance::kEnded ? Due::kNo : by_steps ? Due::kSteps : sync() ? Due::kNo : Due::kTime;
  ASSIGN_OR_RETURN(const Meeting meeting, Gather(attendance, wish, mine, due));
  if (!meeting.anybody_paused) return AfterMeeting::kAllEnded;
  if (meeting.stop) {  // and then the job is saved as it is here
    stop_agreed_ = true;
    return AfterMeeting::kStop;
  }
  const std::string made = absl::StrCat(Name(), " is made");
  Verdict verdict;
  if (team_.chief() && !team_.Met(made, number_)) {
    verdict = Judge(meeting);
    if (verdict.due != Due::kNo) {
      const absl::Status begun = BeginCut(meeting, verdict.due);
      if (!begun.ok()) {
        cut_.reset();
        if (!CostsOneCheckpoint(begun)) return base::Annotate(begun, "checkpoint");
        LOG(ERROR) << "checkpoint skipped, training goes on: " << begun.message();
        verdict.skipped = true;
      }
    }
  }
  const char* const what = verdict.due == Due::kNo ? kNotDue : verdict.skipped ? kLeftOut : kCut;
  ASSIGN_OR_RETURN(const std::string told,
                   team_.FromChief(made, absl::StrCat(what, " ", verdict.plan, " ", since_cut_), number_));
  const std::vector<std::string> words = absl::StrSplit(told, ' ');
  uint64_t chiefs_since_cut = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &plan_) || !absl::SimpleAtoi(words[2], &chiefs_since_cut))
    return absl::InternalError(absl::StrCat("worker 0 says '", told, "' of '", made, "'"));
  last_meeting_ = Clock::now();
  met_at_ = MostBatches(meeting.places);
  // More than none where this process comes to the meeting again: in sync all count alike.
  const auto me = meeting.places.find(worker_.rank());
  since_meeting_ = me == meeting.places.end() ? 0 : mine.batches() - std::min(mine.batches(), me->second.batches());
  since_cut_ = since_meeting_ + (words[0] == kNotDue ? chiefs_since_cut : 0);
  if (words[0] != kNotDue) last_cut_ = last_meeting_;
  if (words[0] == kLeftOut)
    last_cut_ -=
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>((1 - kAgain) * 60 * pace_.minutes));
  if (words[0] == kCut) RETURN_IF_ERROR(Write(meeting.places, mine.meter));
  ++number_;
  return AfterMeeting::kGoOn;
}

absl::StatusOr<TeamCheckpoint::Meeting> TeamCheckpoint::Gather(Attendance attendance, StopWish wish,
                                                               const WorkerPlace& mine, Due due) {
  const char marks[] = {attendance == Attendance::kPaused ? 'p' : 'e', wish == StopWish::kStop ? 's' : 'g',
                        static_cast<char>('0' + static_cast<int>(due))};
  const WorkerPlace brought{mine.position, mine.settings_hash, ""};
  ASSIGN_OR_RETURN(const auto payloads,
                   team_.Share(Name(), std::string(marks, sizeof marks) + EncodePlace(brought), number_));
  Meeting meeting;
  for (const auto& [rank, payload] : payloads) {
    if (payload.size() < sizeof marks || payload[2] < '0' || payload[2] > '2')
      return absl::InternalError(absl::StrCat("worker ", rank, " brings ", payload.size(), " bytes to '", Name(), "'"));
    meeting.anybody_paused |= payload[0] == 'p';
    meeting.stop |= payload[1] == 's';
    meeting.due = std::max(meeting.due, static_cast<Due>(payload[2] - '0'));
    ASSIGN_OR_RETURN(meeting.places[rank], DecodePlace(std::string_view(payload).substr(sizeof marks)));
  }
  return meeting;
}

TeamCheckpoint::Verdict TeamCheckpoint::Judge(const Meeting& meeting) {
  if (!plans()) return {meeting.due, false, 1};
  if (pace_.minutes <= 0) return {meeting.due, false, PlanNext(meeting, kStopLook)};
  const double left = 60 * pace_.minutes - base::SecondsSince(last_cut_);
  const Due due = std::max(meeting.due, left <= 0 ? Due::kTime : Due::kNo);
  const double until = due == Due::kNo ? left : 60 * pace_.minutes;
  // Half of the way that is left, and all of it where that is short.
  const double wanted = until < kClose * 60 * pace_.minutes ? until : until / 2;
  return {due, false, PlanNext(meeting, agrees_on_stops() ? std::min(wanted, kStopLook) : wanted)};
}

// The batches of so many seconds.
uint64_t TeamCheckpoint::PlanNext(const Meeting& meeting, double seconds) {
  const uint64_t most = MostBatches(meeting.places);
  const double batches = static_cast<double>(std::max<uint64_t>(most - std::min(most, met_at_), 1));
  const double seconds_a_batch = std::max(base::SecondsSince(last_meeting_) / batches, 1e-6);
  return static_cast<uint64_t>(
      std::clamp(std::ceil(seconds / seconds_a_batch), 1.0, static_cast<double>(kGrowth * plan_)));
}

// Everybody waits meanwhile. What is asked for by steps is asked for of that step: it waits for the one before.
absl::Status TeamCheckpoint::BeginCut(const Meeting& meeting, Due due) {
  if (writing() && due == Due::kTime) return absl::UnavailableError("the one before is still being written");
  const bool late = writing();
  const auto before = Clock::now();
  RETURN_IF_ERROR(Finish());
  if (late)
    LOG(WARNING) << absl::StrFormat("checkpoint: training waited %.3f s for the one before to be written",
                                    base::SecondsSince(before));
  if (meeting.places.size() != static_cast<size_t>(team_.size()))
    return absl::UnavailableError("a worker was lost, and where it was in its data with it");
  RETURN_IF_ERROR(base::Failpoint("checkpoint.met"));
  const auto start = Clock::now();
  ASSIGN_OR_RETURN(cut_, worker_.BeginCut((epoch_ << 32) + number_ + 1));
  LOG(INFO) << absl::StrFormat("checkpoint: cut in %.1f ms", base::SecondsSince(start) * 1e3);
  return base::Failpoint("checkpoint.begun");
}

// The state of the metrics is the larger part of what workers say, and servers keep what is said for a while: it comes
// where it is needed only.
absl::Status TeamCheckpoint::Write(WorkerPlaces places, const std::string& meter) {
  ASSIGN_OR_RETURN(const auto meters, team_.Share(absl::StrCat(Name(), " counts"), meter, number_));
  if (cut_ == nullptr) return absl::OkStatus();
  for (const auto& [rank, bytes] : meters) places[rank].meter = bytes;
  {
    base::MutexLock lock(mu_);
    writing_ = true;
  }
  writer_ = std::thread([this, cut = std::move(cut_), save = prepare_(places)]() mutable {
    absl::Status status = save(cut->model());
    cut.reset();
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
