#include "server/lane_register.h"

namespace regatta::server {

LaneRegister::Opening::Opening(LaneRegister& lanes, grpc::ServerContext& context) : lanes_(lanes), context_(context) {
  base::MutexLock lock(lanes_.mu_);
  lanes_.silent_.emplace(&context_, std::chrono::steady_clock::now());
}

LaneRegister::Opening::~Opening() {
  base::MutexLock lock(lanes_.mu_);
  lanes_.silent_.erase(&context_);
  if (rank_ < 0) return;
  const auto mine = lanes_.open_.find(rank_);
  if (--mine->second == 0) lanes_.open_.erase(mine);
}

absl::Status LaneRegister::Opening::MayWait() const {
  base::MutexLock lock(lanes_.mu_);
  if (lanes_.silent_.size() <= kMostSilent) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(lanes_.silent_.size(), " lanes have been opened here that have not said whose they are"));
}

absl::Status LaneRegister::Opening::Greet(int rank, int limit) {
  base::MutexLock lock(lanes_.mu_);
  lanes_.silent_.erase(&context_);
  const auto mine = lanes_.open_.find(rank);
  if (mine != lanes_.open_.end() && mine->second >= limit)
    return absl::ResourceExhaustedError(
        absl::StrCat("worker ", rank, " has ", mine->second, " lanes open here, and may have no more"));
  ++lanes_.open_[rank];
  rank_ = rank;
  return absl::OkStatus();
}

void LaneRegister::CancelSilent() {
  base::MutexLock lock(mu_);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [context, since] : silent_)
    if (now - since > patience_) context->TryCancel();
}

int LaneRegister::open(int rank) const {
  base::MutexLock lock(mu_);
  const auto found = open_.find(rank);
  return found == open_.end() ? 0 : found->second;
}

}  // namespace regatta::server
