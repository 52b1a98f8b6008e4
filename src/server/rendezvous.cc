#include "server/rendezvous.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace regatta::server {
namespace {

constexpr std::chrono::seconds kLogAfter(10);
constexpr std::chrono::milliseconds kCallerPoll(100);  // whether it still waits
constexpr size_t kKept = 256;                          // rounds that are over
constexpr size_t kKeptFirst = 32;                      // besides: how the job began, for a worker that comes back late
constexpr size_t kKeptFirstBytes = 64 << 10;           // of one of these; larger ones are like the others
constexpr size_t kKeptAnyhow = 2;                      // the last, whatever their size: for calls that are repeated
constexpr uint64_t kKeptOfName = 4;                    // of one name, the last

absl::Status Forgotten(int rank, const Rendezvous::RoundKey& key) {
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", rank, " comes to '", base::Printable(key.first), "', round ", key.second,
                   ", which is over, and its answer is not kept any more: too many collective calls came after it. "
                   "Start the job again from its last save"));
}

}  // namespace

Rendezvous::Rendezvous(Roster& roster) : roster_(roster) {
  roster_.Listen([this] { CompleteRounds(); });
}

absl::StatusOr<std::shared_ptr<const Rendezvous::Payloads>> Rendezvous::AllGather(
    const Identity& worker, const std::string& name, uint64_t number, std::string payload,
    std::chrono::duration<double> timeout, const std::function<bool()>& cancelled, Outcome outcome) {
  base::MutexLock lock(mu_);
  const int rank = worker.rank;
  const Caller caller{rank, worker.incarnation};
  // Here, under the lock: the worker's place may have been taken since the caller looked at the roster.
  RETURN_IF_ERROR(CheckPlaceLocked(caller));
  const RoundKey key{name, number};
  const auto known = rounds_.find(key);
  std::shared_ptr<Round> round = known == rounds_.end() ? nullptr : known->second;
  if (round == nullptr && forgotten_.Contains(name, number)) return Forgotten(rank, key);
  if (round == nullptr || !round->complete) {
    if (outcome == Outcome::kFailure) payload.resize(std::min(payload.size(), kMostFailureBytes));
    RETURN_IF_ERROR(CheckRoomLocked(caller, key, payload.size()));
    if (round == nullptr) rounds_[key] = round = std::make_shared<Round>();
    if (outcome == Outcome::kFailure)
      round->failures[rank] = absl::AbortedError(absl::StrCat("worker ", rank, ": ", payload));
    round->payloads[rank] = std::move(payload);
    round->brought_by[rank] = worker.incarnation;
    TryCompleteLocked(key, *round);
  }
  ++round->calls[caller];
  const absl::Status waited = AwaitLocked(caller, key, *round, timeout, cancelled);
  LeaveLocked(caller, key, round);
  RETURN_IF_ERROR(waited);
  RETURN_IF_ERROR(round->failure());
  return std::shared_ptr<const Payloads>(round, &round->payloads);
}

absl::Status Rendezvous::CheckPlaceLocked(const Caller& caller) const {
  const auto found = successors_.find(caller.first);
  if (found == successors_.end() || found->second == caller.second) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("another process has taken the place of worker ", caller.first));
}

absl::Status Rendezvous::AwaitLocked(const Caller& caller, const RoundKey& key, const Round& round,
                                     std::chrono::duration<double> timeout, const std::function<bool()>& cancelled) {
  const auto start = std::chrono::steady_clock::now();
  auto said = start;
  while (!round.complete) {
    RETURN_IF_ERROR(roster_.failure());
    RETURN_IF_ERROR(unrecorded_);
    RETURN_IF_ERROR(CheckPlaceLocked(caller));
    if (cancelled())
      return absl::CancelledError(
          absl::StrCat("worker ", caller.first, " does not wait for '", key.first, "' any more"));
    changed_.WaitFor(mu_, kCallerPoll);
    if (round.complete) break;
    const auto now = std::chrono::steady_clock::now();
    if (timeout.count() > 0 && now - start > timeout)
      return absl::DeadlineExceededError(
          absl::StrFormat("waited %.0f s for %s", timeout.count(), MissingLocked(round)));
    if (now - said < kLogAfter) continue;
    said = now;
    LOG(WARNING) << absl::StrFormat("'%s': waiting %.0f s for %s", base::Printable(key.first),
                                    std::chrono::duration<double>(now - start).count(), MissingLocked(round));
  }
  return CheckPlaceLocked(caller);
}

size_t Rendezvous::Round::bytes() const {
  size_t bytes = 0;
  for (const auto& [rank, payload] : payloads) bytes += payload.size();
  return bytes;
}

void Rendezvous::Round::Drop(int rank) {
  payloads.erase(rank);
  brought_by.erase(rank);
  failures.erase(rank);
}

absl::Status Rendezvous::CheckRoomLocked(const Caller& caller, const RoundKey& key, size_t bytes) const {
  const int rank = caller.first;
  size_t calls = 0;
  for (const auto& [other, round] : rounds_) {
    if (round->complete) continue;
    const auto waiting = round->calls.find(caller);
    const bool brought = round->HasPayloadOf(caller);
    calls += std::max(waiting == round->calls.end() ? size_t{0} : waiting->second, brought ? size_t{1} : size_t{0});
    if (brought && other != key) bytes += round->payloads.at(rank).size();
  }
  if (calls >= kMostWaiting)
    return absl::ResourceExhaustedError(
        absl::StrCat("worker ", rank, " has ", calls,
                     " all-gather calls waiting here, and may have no more; end one, or "
                     "wait until the other workers have come"));
  if (bytes > kMostBytes)
    return absl::ResourceExhaustedError(absl::StrCat("worker ", rank, " would have ", bytes,
                                                     " bytes in all-gather calls that wait here, and may have ",
                                                     kMostBytes, "; gather less at a time"));
  return absl::OkStatus();
}

void Rendezvous::LeaveLocked(const Caller& caller, const RoundKey& key, const std::shared_ptr<Round>& round) {
  if (--round->calls[caller] > 0) return;
  round->calls.erase(caller);
  if (round->complete) return;
  if (round->HasPayloadOf(caller) && !round->failures.contains(caller.first)) round->Drop(caller.first);
  const auto found = rounds_.find(key);
  if (round->payloads.empty() && round->calls.empty() && found != rounds_.end() && found->second == round)
    rounds_.erase(found);
}

void Rendezvous::Forget(int rank) {
  base::MutexLock lock(mu_);
  // As the roster has it: of two that joined one after the other the later counts, whichever of them comes here first.
  const uint64_t successor = roster_.members().at(static_cast<size_t>(rank)).id.incarnation;
  successors_[rank] = successor;
  for (const auto& [key, round] : rounds_)
    if (!round->complete && !round->HasPayloadOf({rank, successor})) round->Drop(rank);
  changed_.NotifyAll();
}

bool Rendezvous::TryCompleteLocked(const RoundKey& key, Round& round) {
  for (int rank = 0; rank < roster_.workers(); ++rank)
    if (!round.payloads.contains(rank) && roster_.Expected(rank)) return false;
  // After the look at everybody: one who was lost is not done without where the job ends with it.
  if (!roster_.failure().ok()) return false;
  if (!round.failures.empty() || roster_.CanGoOnLater()) {
    round.complete = true;
    rounds_.erase(key);
    changed_.NotifyAll();
    return true;
  }
  if (const absl::Status recorded = record_(key.first, key.second, round.payloads); !recorded.ok()) {
    unrecorded_ = recorded;
    return false;
  }
  round.complete = true;
  KeepLocked(key);
  changed_.NotifyAll();
  return true;
}

// Rounds come one after the other: who asks again asks for one of the last, or comes back and walks from the first.
void Rendezvous::KeepLocked(const RoundKey& key) {
  const size_t bytes = rounds_.at(key)->bytes();
  if (first_ < kKeptFirst && key.second == 0 && bytes <= kKeptFirstBytes) {
    ++first_;
    return;
  }
  complete_.push_back(key);
  kept_bytes_ += bytes;
  if (key.second > kKeptOfName) ForgetLocked({key.first, key.second - kKeptOfName});
  while (complete_.size() > kKept || (kept_bytes_ > kKeptBytes && complete_.size() > kKeptAnyhow))
    ForgetLocked(RoundKey(complete_.front()));
}

void Rendezvous::ForgetLocked(const RoundKey& key) {
  const auto found = std::find(complete_.begin(), complete_.end(), key);
  if (found == complete_.end()) return;
  complete_.erase(found);
  forgotten_.Add(key.first, key.second);
  const auto round = rounds_.find(key);
  kept_bytes_ -= round->second->bytes();
  rounds_.erase(round);
}

void Rendezvous::Restore(const std::string& name, uint64_t round, Payloads payloads) {
  base::MutexLock lock(mu_);
  if (rounds_.contains({name, round})) return;
  rounds_[{name, round}] = std::make_shared<Round>(Round{std::move(payloads), /*complete=*/true});
  KeepLocked({name, round});
}

void Rendezvous::RestoreForgotten(std::span<const uint64_t> pairs) {
  base::MutexLock lock(mu_);
  forgotten_.Restore(pairs);
}

std::vector<Rendezvous::RoundKey> Rendezvous::over() const {
  base::MutexLock lock(mu_);
  std::vector<RoundKey> over;
  for (const auto& [key, round] : rounds_)
    if (round->complete) over.push_back(key);
  return over;
}

absl::Status Rendezvous::Hold(
    const std::function<absl::Status(const Over& over, const ForgottenRounds& forgotten)>& fn) const {
  base::MutexLock lock(mu_);
  const std::set<RoundKey> later(complete_.begin(), complete_.end());
  Over over;
  const auto add = [&over](const RoundKey& key, const std::shared_ptr<Round>& round) {
    over.emplace_back(key, std::shared_ptr<const Payloads>(round, &round->payloads));
  };
  for (const auto& [key, round] : rounds_)
    if (round->complete && !later.contains(key)) add(key, round);
  for (const RoundKey& key : complete_) add(key, rounds_.at(key));
  return fn(over, forgotten_);
}

std::string Rendezvous::MissingLocked(const Round& round) const {
  std::string missing;
  for (int rank = 0; rank < roster_.workers(); ++rank) {
    if (round.payloads.contains(rank) || !roster_.Expected(rank)) continue;
    absl::StrAppend(&missing, missing.empty() ? "" : ", ", roster_.Describe(rank));
  }
  return missing;
}

void Rendezvous::CompleteRounds() {
  base::MutexLock lock(mu_);
  const auto rounds = rounds_;  // completing one may forget another
  for (const auto& [key, round] : rounds)
    if (!round->complete && !round->payloads.empty()) TryCompleteLocked(key, *round);
  changed_.NotifyAll();
}

}  // namespace regatta::server
