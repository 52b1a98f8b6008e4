// What a server writes to its disk, so that after a kill it has all that it acknowledged: the job, its members, the
// rounds of workers that are complete, and every change of its tables. Each lane has a log (docs/format/log.md).
// Thread-safety: Write, Log, Drop, DropBeforeCompaction and the counters are concurrent; the rest comes before them.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/job_policy.h"
#include "base/status.h"
#include "log/push_log.h"
#include "metrics/counter.h"
#include "server/lease.h"
#include "server/roster.h"
#include "wire/ps.pb.h"

namespace regatta::server {

class Journal {
 public:
  // Takes `data_dir` (lease.h) and reads the entries of the job. A job that ended before `since` (seconds since 1970)
  // is removed. FAILED_PRECONDITION if another process has the data_dir.
  static constexpr double kAlways = std::numeric_limits<double>::infinity();
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& data_dir, const LeaseOptions& lease = {},
                                                       double since = kAlways);

  const std::string& data_dir() const { return lease_->data_dir(); }
  const std::string& folder() const { return lease_->folder(); }  // where its files are
  // Whether the data_dir is still this server's. Asked before anything is answered.
  absl::Status Held() const { return lease_->Check(); }
  // Whether the job has ended, and was not forgotten: there is nothing to serve.
  bool ended() const { return !entries_.empty() && entries_.back().ended(); }
  // The entries in order, from the last compaction on. The first is the job. Empty if there is no job.
  const std::vector<ps::JournalEntry>& entries() const { return entries_; }

  // `fn` for every change that the lane's log holds after record `after`; afterwards Log may be called for it.
  using ChangeFn = std::function<absl::Status(const Identity& worker, uint64_t index, grpc::ByteBuffer& request)>;
  absl::Status OpenLane(int lane, uint64_t after, const ChangeFn& fn);
  // So many have been opened: from now on one that is missing is damage.
  absl::Status KeepLanes(int lanes);
  void SetAck(base::Ack ack) { ack_ = ack; }
  // Of the lanes that are opened from then on.
  void SetSegmentBytes(uint64_t bytes) { segment_bytes_ = bytes; }

  // Afterwards the entry is written, and the data_dir was still this server's.
  absl::Status Write(const ps::JournalEntry& entry);
  // Writes the job and `known`, as if the job began now. The caller makes sure that nothing else is written meanwhile.
  // After an error or a kill the entries before it are still valid. Returns the bytes written.
  absl::StatusOr<uint64_t> CompactJobLog(std::span<const ps::JournalEntry> known);
  // Drops what was written before the compaction, when that is on the disk.
  absl::Status DropBeforeCompaction();
  // Afterwards the request is as safe as the job's ack demands, and the data_dir was still this server's: a successor
  // will find the record. Returns the record's index.
  absl::StatusOr<uint64_t> Log(int lane, const Identity& worker, const grpc::ByteBuffer& request);
  uint64_t LastLogged(int lane) const { return lanes_[static_cast<size_t>(lane)]->last_index(); }
  // Records up to `index` are in checkpoints.
  absl::Status Drop(int lane, uint64_t index) { return lanes_[static_cast<size_t>(lane)]->DropThrough(index); }
  // No worker will return to the job: the logs of its lanes and its checkpoints are removed.
  absl::Status End();
  uint64_t bytes() const;  // of all lanes
  uint64_t job_bytes() const { return job_->bytes(); }
  uint64_t logged() const { return logged_.value(); }  // bytes, since the process began

 private:
  explicit Journal(std::unique_ptr<Lease> lease) : lease_(std::move(lease)) {}
  absl::Status OpenJob();
  absl::StatusOr<uint64_t> Append(const ps::JournalEntry& entry);

  const std::unique_ptr<Lease> lease_;
  base::Ack ack_ = base::Ack::kLogged;
  uint64_t segment_bytes_ = log::LogOptions().segment_bytes;
  std::unique_ptr<log::PushLog> job_;
  std::vector<std::unique_ptr<log::PushLog>> lanes_;
  std::vector<ps::JournalEntry> entries_;
  ps::JournalEntry begin_;              // the job, and how many lanes have a log
  std::atomic<uint64_t> compacted_{0};  // the index of the last compaction's first record
  metrics::Counter logged_;
};

}  // namespace regatta::server
