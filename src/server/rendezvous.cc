#include "server/rendezvous.h"

#include <glog/logging.h>

#include <set>

#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace regatta::server {
namespace {

constexpr std::chrono::seconds kSayAfter(10);
constexpr size_t kKept = 256;        // rounds that are over
constexpr size_t kKeptFirst = 32;    // besides: how the job began, for a worker that comes back late
constexpr uint64_t kKeptOfName = 4;  // of one name, the last

}  // namespace

Rendezvous::Rendezvous(Roster& roster) : roster_(roster) {
  roster_.Listen([this] { Look(); });
}

absl::StatusOr<std::shared_ptr<const Rendezvous::Payloads>> Rendezvous::Meet(int rank, const std::string& name,
                                                                             uint64_t number, std::string payload,
                                                                             std::chrono::duration<double> timeout,
                                                                             const std::function<bool()>& cancelled,
                                                                             Brought brought) {
  base::MutexLock lock(mu_);
  const RoundKey key{name, number};
  std::shared_ptr<Round>& current = rounds_[key];
  if (current == nullptr) current = std::make_shared<Round>();
  const std::shared_ptr<Round> round = current;
  if (!round->complete) {
    if (brought == Brought::kFailure)
      round->failures[rank] = absl::AbortedError(absl::StrCat("worker ", rank, ": ", payload));
    round->payloads[rank] = std::move(payload);
    TryCompleteLocked(key, *round);
  }
  const auto start = std::chrono::steady_clock::now();
  auto said = start;
  while (!round->complete) {
    RETURN_IF_ERROR(roster_.failure());
    RETURN_IF_ERROR(unrecorded_);
    if (cancelled())
      return absl::CancelledError(absl::StrCat("worker ", rank, " does not wait for '", name, "' any more"));
    changed_.WaitFor(mu_, std::chrono::milliseconds(500));
    if (round->complete) break;
    const auto now = std::chrono::steady_clock::now();
    if (timeout.count() > 0 && now - start > timeout)
      return absl::DeadlineExceededError(
          absl::StrFormat("waited %.0f s for %s", timeout.count(), MissingLocked(*round)));
    if (now - said < kSayAfter) continue;
    said = now;
    LOG(WARNING) << absl::StrFormat("'%s': waiting %.0f s for %s", base::Printable(name),
                                    std::chrono::duration<double>(now - start).count(), MissingLocked(*round));
  }
  RETURN_IF_ERROR(round->failure());
  return std::shared_ptr<const Payloads>(round, &round->payloads);
}

void Rendezvous::Forget(int rank) {
  base::MutexLock lock(mu_);
  for (const auto& [key, round] : rounds_) {
    if (round->complete) continue;
    round->payloads.erase(rank);
    round->failures.erase(rank);
  }
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

// Workers meet one after the other: who asks again asks for one of the last, or comes back and walks from the first.
void Rendezvous::KeepLocked(const RoundKey& key) {
  if (first_ < kKeptFirst && key.second == 0) {
    ++first_;
    return;
  }
  complete_.push_back(key);
  if (key.second > kKeptOfName) {
    const RoundKey old{key.first, key.second - kKeptOfName};
    rounds_.erase(old);
    std::erase(complete_, old);
  }
  if (complete_.size() <= kKept) return;
  rounds_.erase(complete_.front());
  complete_.pop_front();
}

void Rendezvous::Restore(const std::string& name, uint64_t round, Payloads payloads) {
  base::MutexLock lock(mu_);
  if (rounds_.contains({name, round})) return;
  rounds_[{name, round}] = std::make_shared<Round>(Round{std::move(payloads), /*complete=*/true});
  KeepLocked({name, round});
}

std::vector<Rendezvous::RoundKey> Rendezvous::over() const {
  base::MutexLock lock(mu_);
  std::vector<RoundKey> over;
  for (const auto& [key, round] : rounds_)
    if (round->complete) over.push_back(key);
  return over;
}

absl::Status Rendezvous::Hold(const std::function<absl::Status(const Over& over)>& fn) const {
  base::MutexLock lock(mu_);
  const std::set<RoundKey> later(complete_.begin(), complete_.end());
  Over over;
  const auto add = [&over](const RoundKey& key, const std::shared_ptr<Round>& round) {
    over.emplace_back(key, std::shared_ptr<const Payloads>(round, &round->payloads));
  };
  for (const auto& [key, round] : rounds_)
    if (round->complete && !later.contains(key)) add(key, round);
  for (const RoundKey& key : complete_) add(key, rounds_.at(key));
  return fn(over);
}

std::string Rendezvous::MissingLocked(const Round& round) const {
  std::string missing;
  for (int rank = 0; rank < roster_.workers(); ++rank) {
    if (round.payloads.contains(rank) || !roster_.Expected(rank)) continue;
    absl::StrAppend(&missing, missing.empty() ? "" : ", ", roster_.Describe(rank));
  }
  return missing;
}

void Rendezvous::Look() {
  base::MutexLock lock(mu_);
  const auto rounds = rounds_;  // completing one may forget another
  for (const auto& [key, round] : rounds)
    if (!round->complete && !round->payloads.empty()) TryCompleteLocked(key, *round);
  changed_.NotifyAll();
}

}  // namespace regatta::server
