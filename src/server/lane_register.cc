#include "server/lane_register.h"

#include <algorithm>
#include <utility>

namespace regatta::server {

LaneRegister::Opening::Opening(LaneRegister& lanes, std::string peer, std::function<void()> cancel, size_t most)
    : lanes_(lanes), cancel_(std::move(cancel)) {
  base::MutexLock lock(lanes_.mu_);
  if (lanes_.silent_.size() >= std::max(kMostSilent, most)) lanes_.MakeRoomLocked();
  number_ = ++lanes_.opened_;
  lanes_.silent_.emplace(number_, Silent{std::move(peer), cancel_, std::chrono::steady_clock::now()});
}

LaneRegister::Opening::~Opening() {
  base::MutexLock lock(lanes_.mu_);
  lanes_.silent_.erase(number_);
  if (rank_ < 0) return;
  const auto mine = lanes_.open_.find(rank_);
  mine->second.erase(number_);
  if (mine->second.empty()) lanes_.open_.erase(mine);
}

absl::Status LaneRegister::Opening::Greet(int rank, int limit, uint64_t incarnation) {
  base::MutexLock lock(lanes_.mu_);
  lanes_.silent_.erase(number_);
  const auto mine = lanes_.open_.find(rank);
  if (mine != lanes_.open_.end()) {
    int open = 0;
    for (const auto& [number, lane] : mine->second) {
      if (lane.incarnation != incarnation)
        lane.cancel();
      else
        ++open;
    }
    if (open >= limit)
      return absl::ResourceExhaustedError(
          absl::StrCat("worker ", rank, " has ", open, " lanes open here, and may have no more"));
  }
  lanes_.open_[rank].emplace(number_, Open{incarnation, cancel_});
  rank_ = rank;
  return absl::OkStatus();
}

void LaneRegister::MakeRoomLocked() {
  std::map<std::string, size_t> of_peer;
  for (const auto& [number, lane] : silent_) ++of_peer[lane.peer];
  size_t most = 0;
  for (const auto& [peer, count] : of_peer) most = std::max(most, count);
  const auto oldest = std::find_if(silent_.begin(), silent_.end(),
                                   [&](const auto& entry) { return of_peer[entry.second.peer] == most; });
  oldest->second.cancel();
  silent_.erase(oldest);
}

void LaneRegister::CancelSilent() {
  base::MutexLock lock(mu_);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [number, lane] : silent_)
    if (now - lane.since > timeout_) lane.cancel();
}

int LaneRegister::open(int rank) const {
  base::MutexLock lock(mu_);
  const auto found = open_.find(rank);
  return found == open_.end() ? 0 : static_cast<int>(found->second.size());
}

size_t LaneRegister::silent() const {
  base::MutexLock lock(mu_);
  return silent_.size();
}

}  // namespace regatta::server
