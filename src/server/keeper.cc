#include "server/keeper.h"

#include <glog/logging.h>

#include "base/failpoint.h"

namespace regatta::server {
namespace {

constexpr std::chrono::milliseconds kLook(100);
constexpr std::chrono::seconds kAfterFailure(30);
constexpr size_t kKeptSaves = 2;
// The log holds what came since the older of two checkpoints, and what comes while one is written.
constexpr uint64_t kIntervals = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<Keeper>> Keeper::Start(HostedJob& job, Journal& journal, const KeeperOptions& options) {
  std::unique_ptr<Keeper> keeper(new Keeper(job, journal, options));
  ASSIGN_OR_RETURN(keeper->kept_, keeper->local_.List());
  for (LocalSaves::Kept& kept : keeper->kept_)
    for (ps::LaneState& lane : *kept.state.mutable_lanes()) lane.clear_before();
  keeper->thread_ = std::thread([keeper = keeper.get()] { keeper->Run(); });
  return keeper;
}

uint64_t Keeper::SegmentBytes(const KeeperOptions& options, int lanes) {
  constexpr uint64_t kParts = 8;  // of what a lane logs between two checkpoints
  return std::clamp<uint64_t>(options.log_bytes / kIntervals / kParts / static_cast<uint64_t>(lanes), 1 << 16,
                              64 << 20);
}

Keeper::~Keeper() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Keeper::Run() {
  uint64_t begin = 0;  // what the log came to when it was made short
  std::chrono::nanoseconds wait = kLook;
  while (true) {
    {
      base::MutexLock lock(mu_);
      if (!stopping_) changed_.WaitFor(mu_, wait);
      if (stopping_) return;
    }
    wait = kLook;
    if (journal_.logged() - begin < options_.log_bytes / kIntervals) continue;
    const uint64_t before = journal_.logged();
    if (const absl::Status saved = Save(); saved.ok()) {
      begin = before;
    } else {
      LOG(WARNING) << "no checkpoint was written, and the log grows: " << saved.message() << "; tried again in "
                   << kAfterFailure.count() << " s";
      wait = kAfterFailure;
    }
  }
}

absl::Status Keeper::Save() {
  const uint64_t number = kept_.empty() ? 1 : kept_.back().number + 1;
  const auto start = std::chrono::steady_clock::now();
  table::CutOptions options;
  options.part.emplace();
  options.part->cut = absl::StrCat("server-", job_.place().server, "-", number);
  options.part->server = static_cast<uint32_t>(job_.place().server);
  options.part->servers = static_cast<uint32_t>(job_.place().servers);
  options.part->shards = {static_cast<uint64_t>(job_.shards().begin), static_cast<uint64_t>(job_.shards().end)};
  std::unique_ptr<table::ModelCut> cut;
  ps::ServerState state;
  {
    const GateClosed closed(job_.gate());
    state = job_.State();
    ASSIGN_OR_RETURN(cut, table::ModelCut::Begin(job_.tables(), options));
  }
  RETURN_IF_ERROR(base::Failpoint("keeper.cut"));
  RETURN_IF_ERROR(local_.Write(number, *cut, state));
  RETURN_IF_ERROR(base::Failpoint("keeper.written"));
  RETURN_IF_ERROR(cut->Complete());
  for (ps::LaneState& lane : *state.mutable_lanes()) lane.clear_before();  // what is needed from now on is small
  kept_.push_back({number, std::move(state)});
  saves_.Add();
  RETURN_IF_ERROR(Forget());
  LOG(INFO) << "checkpoint " << number << ": " << job_.rows() << " rows in "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s; the log holds "
            << journal_.bytes() << " bytes";
  return absl::OkStatus();
}

// The log first: an older checkpoint without its log is of no use, and a log that is longer than it must be is no harm.
absl::Status Keeper::Forget() {
  if (kept_.size() < kKeptSaves) return absl::OkStatus();
  const LocalSaves::Kept& oldest = kept_[kept_.size() - kKeptSaves];
  for (int lane = 0; lane < oldest.state.lanes_size(); ++lane)
    RETURN_IF_ERROR(journal_.Drop(lane, oldest.state.lanes(lane).logged()));
  RETURN_IF_ERROR(base::Failpoint("keeper.dropped"));
  while (kept_.size() > kKeptSaves) {
    RETURN_IF_ERROR(local_.Remove(kept_.front().number));
    kept_.erase(kept_.begin());
  }
  return absl::OkStatus();
}

}  // namespace regatta::server
