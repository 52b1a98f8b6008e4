#include "server/log_compactor.h"

#include <glog/logging.h>

#include "base/failpoint.h"

namespace regatta::server {
namespace {

constexpr std::chrono::milliseconds kCompactorPoll(100);
constexpr std::chrono::seconds kAfterFailure(30);
// The log holds what came since the last checkpoint of the older chain, and what comes while one is written.
uint64_t Intervals(const CompactorOptions& options) { return options.chain + 2; }

// What is needed of a checkpoint that has been written is small.
void ForgetRows(ps::ServerState& state) {
  for (ps::LaneState& lane : *state.mutable_lanes()) {
    lane.clear_before();
    lane.clear_rounds();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogCompactor>> LogCompactor::Start(HostedJob& job, Journal& journal,
                                                                  const CompactorOptions& options) {
  std::unique_ptr<LogCompactor> compactor(new LogCompactor(job, journal, options));
  ASSIGN_OR_RETURN(compactor->kept_, compactor->local_.List());
  for (table::SparseTable* table : job.tables().sparse) table->TrackChanges(table::Tracking::kOn);
  for (LocalSaves::Kept& kept : compactor->kept_) ForgetRows(kept.state);
  compactor->thread_ = std::thread([compactor = compactor.get()] { compactor->Run(); });
  return compactor;
}

uint64_t LogCompactor::SegmentBytes(const CompactorOptions& options, int lanes) {
  constexpr uint64_t kParts = 8;  // of what a lane logs between two checkpoints
  return std::clamp<uint64_t>(options.log_bytes / Intervals(options) / kParts / static_cast<uint64_t>(lanes), 1 << 16,
                              64 << 20);
}

LogCompactor::~LogCompactor() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void LogCompactor::Run() {
  uint64_t begin = 0;  // what the log came to when it was made short
  std::chrono::nanoseconds wait = kCompactorPoll;
  while (true) {
    {
      base::MutexLock lock(mu_);
      if (!stopping_) changed_.WaitFor(mu_, wait);
      if (stopping_) return;
    }
    wait = kCompactorPoll;
    if (const absl::Status shortened = CompactJobLogIfLong(); !shortened.ok()) {
      LOG(WARNING) << "the log of the job was not compacted, and grows: " << shortened.message() << "; tried again in "
                   << kAfterFailure.count() << " s";
      wait = kAfterFailure;
    }
    if (journal_.logged() - begin < options_.log_bytes / Intervals(options_)) continue;
    const uint64_t before = journal_.logged();
    if (const absl::Status saved = Save(); saved.ok()) {
      begin = before;
    } else if (!absl::IsUnavailable(saved)) {
      LOG(WARNING) << "no checkpoint was written, and the log grows: " << saved.message() << "; tried again in "
                   << kAfterFailure.count() << " s";
      wait = kAfterFailure;
    }
  }
}

// Where much is known, it is not told for every little that comes.
absl::Status LogCompactor::CompactJobLogIfLong() {
  const uint64_t bytes = journal_.job_bytes();
  if (bytes < compacted_bytes_ + std::max(compacted_bytes_, options_.job_bytes)) return absl::OkStatus();
  ASSIGN_OR_RETURN(compacted_bytes_, job_.CompactJobLog());
  LOG(INFO) << "the log of the job was compacted: " << compacted_bytes_ << " bytes in place of " << bytes;
  return absl::OkStatus();
}

absl::Status LogCompactor::Save() {
  const SnapshotLock::Held lock(job_.snapshot_lock());
  if (!lock.ok()) return absl::UnavailableError("a checkpoint of the whole job is being read");
  const uint64_t number = kept_.empty() ? 1 : kept_.back().number + 1;
  const auto start = std::chrono::steady_clock::now();
  checkpoint::SnapshotOptions options;
  options.part.emplace();
  options.part->snapshot = absl::StrCat("server-", job_.place().server, "-", number);
  options.part->server = static_cast<uint32_t>(job_.place().server);
  options.part->servers = static_cast<uint32_t>(job_.place().servers);
  options.part->shards = {static_cast<uint64_t>(job_.shards().begin), static_cast<uint64_t>(job_.shards().end)};
  std::unique_ptr<checkpoint::ModelSnapshot> snapshot;
  ps::ServerState state;
  {
    const WriteGateClosed closed(job_.gate());
    job_.DropHeldPushes(options_.held);
    state = job_.State();
    ASSIGN_OR_RETURN(snapshot, BeginSnapshot(options));
  }
  RETURN_IF_ERROR(base::Failpoint("compactor.snapshot"));
  RETURN_IF_ERROR(local_.Write(number, *snapshot, state));
  RETURN_IF_ERROR(base::Failpoint("compactor.written"));
  RETURN_IF_ERROR(snapshot->Complete());
  ForgetRows(state);
  kept_.push_back({number, std::move(state), !options.base.has_value()});
  saves_.Add();
  RETURN_IF_ERROR(Forget());
  LOG(INFO) << "checkpoint " << number << ", "
            << (options.base.has_value() ? absl::StrCat("what changed since ", options.base->id) : "whole") << ": "
            << job_.rows() << " rows in "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s; the log holds "
            << journal_.bytes() << " bytes";
  return absl::OkStatus();
}

size_t LogCompactor::ChainAt(size_t last) const {
  while (last > 0 && !kept_[last].whole) --last;
  return last;
}

// Call it while the gate is closed. After a restart or a Clear the set of changed rows is unknown, so the next save is
// a full one. A base save that fails verification is ignored.
absl::StatusOr<std::unique_ptr<checkpoint::ModelSnapshot>> LogCompactor::BeginSnapshot(
    checkpoint::SnapshotOptions& options) {
  if (!kept_.empty() && kept_.size() - ChainAt(kept_.size() - 1) < options_.chain) {
    if (auto base = local_.BaseOf(kept_.back().number); base.ok()) {
      options.base = *std::move(base);
      auto snapshot = checkpoint::ModelSnapshot::Begin(job_.tables(), options);
      if (snapshot.ok() || !absl::IsFailedPrecondition(snapshot.status())) return snapshot;
      options.base.reset();
    }
  }
  return checkpoint::ModelSnapshot::Begin(job_.tables(), options);
}

// Drops the log first: an older checkpoint without its log is useless, but a log that is too long does no harm. An
// incremental checkpoint is removed before its base.
absl::Status LogCompactor::Forget() {
  const size_t newest = ChainAt(kept_.size() - 1);
  if (newest == 0) return absl::OkStatus();
  const LocalSaves::Kept& oldest = kept_[newest - 1];
  for (int lane = 0; lane < oldest.state.lanes_size(); ++lane)
    RETURN_IF_ERROR(journal_.Drop(lane, oldest.state.lanes(lane).logged()));
  RETURN_IF_ERROR(base::Failpoint("compactor.dropped"));
  for (size_t older = ChainAt(newest - 1); older > 0; --older) {
    RETURN_IF_ERROR(local_.Remove(kept_[older - 1].number));
    kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(older) - 1);
  }
  return absl::OkStatus();
}

}  // namespace regatta::server
