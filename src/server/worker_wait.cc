#include "server/worker_wait.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace regatta::server {
namespace {

constexpr std::chrono::minutes kLongestPause(10);
constexpr size_t kMostNamed = 16;

}  // namespace

WorkerWait::WorkerWait(int workers, std::chrono::duration<double> quiet, Clock::time_point start)
    : workers_(workers),
      start_(start),
      pause_(std::chrono::duration_cast<Clock::duration>(quiet)),
      next_(start + pause_) {}

std::string WorkerWait::LineIfDue(Clock::time_point now, const Roster* roster) {
  if (now < next_) return "";
  pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
  next_ = now + pause_;
  const std::string missing = Missing(roster);
  if (missing.empty()) return "";
  return absl::StrFormat("waiting %.0f s for %s; one that has ended says why in its own log",
                         std::chrono::duration<double>(now - start_).count(), missing);
}

std::string WorkerWait::Missing(const Roster* roster) const {
  if (roster == nullptr && workers_ == 0) return "the first worker";
  std::vector<int> ranks;
  if (roster == nullptr)
    for (int rank = 0; rank < workers_; ++rank) ranks.push_back(rank);
  else
    for (const Member& member : roster->members())
      if (member.state == MemberState::kAwaited) ranks.push_back(member.id.rank);
  std::string missing;
  for (size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    absl::StrAppend(&missing, i == 0 ? "" : ", ", "worker ", ranks[i], " (not here yet)");
  if (ranks.size() > kMostNamed) absl::StrAppend(&missing, " and ", ranks.size() - kMostNamed, " more");
  return missing;
}

}  // namespace regatta::server
