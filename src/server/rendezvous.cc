#include "server/rendezvous.h"

#include <glog/logging.h>

#include "absl/strings/str_format.h"

namespace regatta::server {
namespace {

constexpr std::chrono::seconds kSayAfter(10);

}  // namespace

Rendezvous::Rendezvous(Roster& roster) : roster_(roster) {
  roster_.Listen([this] { Look(); });
}

absl::StatusOr<std::shared_ptr<const Rendezvous::Payloads>> Rendezvous::Meet(int rank, const std::string& name,
                                                                             std::string payload,
                                                                             std::chrono::duration<double> timeout,
                                                                             const std::function<bool()>& cancelled) {
  base::MutexLock lock(mu_);
  std::shared_ptr<Round>& current = rounds_[name];
  if (current == nullptr || current->complete) current = std::make_shared<Round>();
  const std::shared_ptr<Round> round = current;
  round->payloads[rank] = std::move(payload);
  if (CompleteLocked(*round)) {
    round->complete = true;
    changed_.NotifyAll();
  }
  const auto start = std::chrono::steady_clock::now();
  auto said = start;
  while (!round->complete) {
    RETURN_IF_ERROR(roster_.failure());
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
    LOG(WARNING) << absl::StrFormat("'%s': waiting %.0f s for %s", name,
                                    std::chrono::duration<double>(now - start).count(), MissingLocked(*round));
  }
  return std::shared_ptr<const Payloads>(round, &round->payloads);
}

bool Rendezvous::CompleteLocked(const Round& round) const {
  for (int rank = 0; rank < roster_.workers(); ++rank)
    if (!round.payloads.contains(rank) && roster_.Expected(rank)) return false;
  return true;
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
  for (auto& [name, round] : rounds_)
    if (!round->complete && !round->payloads.empty() && CompleteLocked(*round)) round->complete = true;
  changed_.NotifyAll();
}

}  // namespace regatta::server
