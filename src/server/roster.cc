#include "server/roster.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_format.h"

namespace regatta::server {
const char* Name(MemberState state) {
  switch (state) {
    case MemberState::kAwaited:
      return "awaited";
    case MemberState::kHere:
      return "here";
    case MemberState::kAway:
      return "away";
    case MemberState::kDone:
      return "done";
    case MemberState::kLost:
      return "lost";
  }
  return "";
}

Roster::Roster(int workers, base::LossPolicy policy, std::chrono::duration<double> timeout)
    : policy_(policy), timeout_(timeout), members_(static_cast<size_t>(workers)) {
  for (int rank = 0; rank < workers; ++rank) members_[static_cast<size_t>(rank)].id.rank = rank;
}

absl::StatusOr<std::string> Roster::Join(const Identity& id) {
  std::string predecessor;
  {
    base::MutexLock lock(mu_);
    if (!failure_.ok()) return failure_;
    if (id.rank < 0 || id.rank >= workers())
      return absl::InvalidArgumentError(
          absl::StrCat("worker ", id.rank, " is not one of ", workers(), " (PADDLE_TRAINER_ID counts from 0)"));
    Member& member = members_[static_cast<size_t>(id.rank)];
    if (PresentLocked(member) && member.id.incarnation == id.incarnation) {
      HeardLocked(member);
      return member.predecessor;  // it asks again: the first answer was lost
    }
    // One that is done may have been killed before all servers knew it.
    const bool returns = policy_ == base::LossPolicy::kAwait && member.state != MemberState::kAwaited;
    if (member.state != MemberState::kAwaited && !returns)
      return absl::FailedPreconditionError(absl::StrCat(
          "there has been a worker ", id.rank, " already: ", member.id.where, " is ", Name(member.state),
          "; start every worker once, with its own PADDLE_TRAINER_ID. One that died can "
          "be started again if runner.on_worker_loss is await (LossPolicy::kAwait in a program of your own)"));
    if (returns) RETURN_IF_ERROR(CheckGoneLocked(member));
    RETURN_IF_ERROR(record_(id, MemberState::kHere));
    if (returns) predecessor = member.id.where;
    LOG(INFO) << "worker " << id.rank << " of " << workers() << " is here (" << id.where << ")"
              << (returns ? " in the place of " : "") << predecessor;
    member = {id, MemberState::kHere, std::chrono::steady_clock::now(), {}, {}, {}, predecessor, true};
  }
  Changed();
  return predecessor;
}

absl::Status Roster::CheckGoneLocked(const Member& member) const {
  if (member.state != MemberState::kHere) return absl::OkStatus();
  const auto now = std::chrono::steady_clock::now();
  // Workers that seem silent because this process slept are excused at the next check.
  const bool slept = checked_.has_value() && now - *checked_ > kAsleep;
  if (!slept && now - member.heard >= lives_) return absl::OkStatus();
  if (!slept && member.broken.has_value() && now - *member.broken >= kReopens) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      DescribeLocked(member.id.rank), " is running; another process can take its place when it has not been heard for ",
      lives_.count(), " s. Start every worker once, with its own PADDLE_TRAINER_ID"));
}

absl::Status Roster::Check(const Identity& id) const {
  base::MutexLock lock(mu_);
  if (!failure_.ok()) return failure_;
  if (id.rank < 0 || id.rank >= workers()) return absl::InvalidArgumentError(absl::StrCat("no worker ", id.rank));
  const Member& member = members_[static_cast<size_t>(id.rank)];
  if (PresentLocked(member) && member.id.incarnation == id.incarnation) return absl::OkStatus();
  if (member.state == MemberState::kHere && policy_ == base::LossPolicy::kAwait)
    return absl::FailedPreconditionError(
        absl::StrCat("another process has taken the place of worker ", id.rank, ": ", member.id.where));
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", id.rank, " is ", Name(member.state), " and not connected under this incarnation"));
}

Member* Roster::FindLocked(const Identity& id) {
  if (id.rank < 0 || id.rank >= workers()) return nullptr;
  Member& member = members_[static_cast<size_t>(id.rank)];
  return member.id.incarnation == id.incarnation ? &member : nullptr;
}

void Roster::HeardLocked(Member& member) {
  member.heard = std::chrono::steady_clock::now();
  member.broken.reset();
  member.seen = true;
  if (member.state != MemberState::kAway || member.gave_up) return;
  member.state = MemberState::kHere;
  member.away.reset();
  LOG(INFO) << "worker " << member.id.rank << " is heard again (" << member.id.where << ")";
}

void Roster::Heard(const Identity& id, const ps::WorkerProgress& progress) {
  base::MutexLock lock(mu_);
  Member* const member = FindLocked(id);
  if (member == nullptr) return;
  HeardLocked(*member);
  member->progress = progress;
}

void Roster::AskToStop() {
  base::MutexLock lock(mu_);
  if (!stop_asked_.has_value()) stop_asked_ = std::chrono::steady_clock::now();
}

bool Roster::stopping() const {
  base::MutexLock lock(mu_);
  return stop_asked_.has_value();
}

void Roster::Leave(const Identity& id, Farewell farewell) {
  {
    base::MutexLock lock(mu_);
    Member* const member = FindLocked(id);
    if (member == nullptr) return;
    member->seen = true;
    if (!PresentLocked(*member)) return;
    const bool away = farewell == Farewell::kGaveUp && policy_ == base::LossPolicy::kAwait;
    if (!away) {
      if (const absl::Status recorded = record_(id, MemberState::kDone); !recorded.ok() && failure_.ok())
        failure_ = recorded;
    }
    member->state = away ? MemberState::kAway : MemberState::kDone;
    member->gave_up = away;
    member->away.reset();
    if (away) member->away = std::chrono::steady_clock::now();
    LOG(INFO) << "worker " << id.rank << (farewell == Farewell::kDone ? " is done" : " gave up")
              << (away ? "; the others wait for it to come back (runner.on_worker_loss: await)" : "");
  }
  Changed();
}

void Roster::Lose(int rank, const std::string& why) {
  {
    base::MutexLock lock(mu_);
    if (rank < 0 || rank >= workers() || members_[static_cast<size_t>(rank)].state != MemberState::kHere) return;
    LoseLocked(rank, why);
  }
  Changed();
}

void Roster::Reached(const Identity& id) {
  base::MutexLock lock(mu_);
  if (Member* const member = FindLocked(id)) HeardLocked(*member);
}

void Roster::Suspect(const Identity& id) {
  base::MutexLock lock(mu_);
  Member* const member = FindLocked(id);
  if (member != nullptr && !member->broken.has_value()) member->broken = std::chrono::steady_clock::now();
}

void Roster::Restore(const Identity& id, MemberState state, const std::string& predecessor) {
  base::MutexLock lock(mu_);
  if (id.rank < 0 || id.rank >= workers()) return;
  Member& member = members_[static_cast<size_t>(id.rank)];
  const bool taken = member.state != MemberState::kAwaited && member.id.incarnation != id.incarnation;
  const std::string known = taken ? member.id.where : member.predecessor;
  member = {id, state, std::chrono::steady_clock::now(), {}, {}, {}, predecessor.empty() ? known : predecessor, false};
}

absl::Status Roster::Hold(const std::function<absl::Status(const std::vector<Member>& members)>& fn) const {
  base::MutexLock lock(mu_);
  return fn(members_);
}

void Roster::ExpireSilent(std::chrono::duration<double> limit) {
  bool lost = false;
  {
    base::MutexLock lock(mu_);
    const auto now = std::chrono::steady_clock::now();
    checked_ = now;
    for (int rank = 0; rank < workers(); ++rank) {
      const Member& member = members_[static_cast<size_t>(rank)];
      if (failure_.ok()) {
        failure_ = GiveUpLocked(rank, limit);
        if (!failure_.ok()) LOG(ERROR) << failure_.message();
        lost |= !failure_.ok();
      }
      const bool broken = member.broken.has_value() && now - *member.broken >= kLives;
      if (member.state != MemberState::kHere || (now - member.heard < limit && !broken)) continue;
      LoseLocked(rank, broken ? "its connection broke" : "no heartbeat");
      lost = true;
    }
  }
  if (lost) Changed();
}

absl::Status Roster::GiveUpLocked(int rank, std::chrono::duration<double> limit) const {
  const Member& member = members_[static_cast<size_t>(rank)];
  if (!member.away.has_value()) return absl::OkStatus();
  const auto now = std::chrono::steady_clock::now();
  if (now - *member.away > timeout_)
    return absl::AbortedError(absl::StrFormat("%s did not come back within %.0f s (runner.worker_wait_timeout)",
                                              DescribeLocked(rank), timeout_.count()));
  if (stop_asked_.has_value() && now - std::max(*stop_asked_, *member.away) > limit)
    return absl::AbortedError(
        absl::StrCat("the job was told to stop, and ", DescribeLocked(rank),
                     " did not come back to save it with the others: it stops without a save of its last steps"));
  return absl::OkStatus();
}

void Roster::ExtendDeadlines(std::chrono::steady_clock::duration slept) {
  base::MutexLock lock(mu_);
  for (Member& member : members_) {
    member.heard += slept;
    if (member.broken.has_value()) *member.broken += slept;
  }
}

void Roster::LoseLocked(int rank, const std::string& why) {
  const std::string text = absl::StrCat(DescribeLocked(rank), " was lost: ", why);
  Member& member = members_[static_cast<size_t>(rank)];
  if (policy_ == base::LossPolicy::kAwait) {
    LOG(WARNING) << text << "; the others wait " << timeout_.count()
                 << " s for it to come back (runner.on_worker_loss: await)";
    member.state = MemberState::kAway;
    member.away = std::chrono::steady_clock::now();
    return;
  }
  if (const absl::Status recorded = record_(member.id, MemberState::kLost); !recorded.ok() && failure_.ok())
    failure_ = recorded;
  member.state = MemberState::kLost;
  if (policy_ == base::LossPolicy::kShrink) {
    LOG(WARNING) << text << "; the others go on (runner.on_worker_loss: shrink)";
    return;
  }
  LOG(ERROR) << text << "; the job ends (runner.on_worker_loss: fail)";
  if (failure_.ok()) failure_ = absl::AbortedError(text);
}

void Roster::Fail(const absl::Status& status) {
  {
    base::MutexLock lock(mu_);
    if (!failure_.ok()) return;
    failure_ = status;
  }
  Changed();
}

bool Roster::Expected(int rank) const {
  base::MutexLock lock(mu_);
  const MemberState state = members_[static_cast<size_t>(rank)].state;
  return state == MemberState::kAwaited || state == MemberState::kHere || state == MemberState::kAway;
}

bool Roster::AllGone() const {
  base::MutexLock lock(mu_);
  for (const Member& member : members_)
    if (member.state != MemberState::kDone && member.state != MemberState::kLost && !member.gave_up) return false;
  return true;
}

bool Roster::CanGoOnLater() const {
  base::MutexLock lock(mu_);
  if (policy_ != base::LossPolicy::kAwait) return false;
  return !failure_.ok() ||
         std::any_of(members_.begin(), members_.end(), [](const Member& member) { return member.gave_up; });
}

absl::Status Roster::failure() const {
  base::MutexLock lock(mu_);
  return failure_;
}

std::vector<Member> Roster::members() const {
  base::MutexLock lock(mu_);
  return members_;
}

std::string Roster::Describe(int rank) const {
  base::MutexLock lock(mu_);
  return DescribeLocked(rank);
}

std::string Roster::DescribeLocked(int rank) const {
  const Member& member = members_[static_cast<size_t>(rank)];
  if (member.state == MemberState::kAwaited) return absl::StrCat("worker ", rank, " (not here yet)");
  const double silence = std::chrono::duration<double>(std::chrono::steady_clock::now() - member.heard).count();
  return absl::StrFormat("worker %d (%s, %slast heard %.1f s ago)", rank, member.id.where,
                         member.state == MemberState::kAway ? "away, " : "", silence);
}

void Roster::Listen(std::function<void()> listener) { listeners_.push_back(std::move(listener)); }

void Roster::Changed() {
  for (const auto& listener : listeners_) listener();
}

}  // namespace regatta::server
