// A log of records in segments (docs/format/log.md): what was appended is there after the process was killed, what was
// synced after the machine lost its power. A tail that a kill or a power cut left unfinished is cut at the last whole
// record; anything else that is not as it was written is DATA_LOSS, and nothing of the log is changed.
// Thread-safety: Append, Sync, BeginSegment, DropThrough and the counters are concurrent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "log/end_mark.h"
#include "log/log_segment.h"

namespace regatta::log {

struct LogOptions {
  std::string folder;     // made where it is missing
  std::string name;       // in front of the names of its files: several logs may share a folder
  bool expected = false;  // it has been there: DATA_LOSS where nothing of it is
  bool headless = false;  // its first records may have been dropped: the reader knows whether the rest suffices
  uint64_t segment_bytes = 64 << 20;
  uint64_t boot = BootIdentity();
};

class PushLog {
 public:
  using ReadFn = std::function<absl::Status(const LogRecord& record)>;
  // Reads what is there, `fn` for every record after `after`, then goes on behind it. DATA_LOSS also where records
  // between `after` and the log's first are missing, or where there is no log and `after` is not 0.
  static absl::StatusOr<std::unique_ptr<PushLog>> Open(const LogOptions& options, uint64_t after, const ReadFn& fn);
  ~PushLog();
  PushLog(const PushLog&) = delete;
  PushLog& operator=(const PushLog&) = delete;

  // The record of all parts, one behind the other; its index. After an error the log is as it was, or fails from then
  // on. RESOURCE_EXHAUSTED where the disk is full.
  absl::StatusOr<uint64_t> Append(std::span<const std::string_view> parts);
  // Afterwards the records up to `index` survive a loss of power. Callers that come together share one fsync.
  absl::Status Sync(uint64_t index);
  // Afterwards the next record is the first of a segment.
  absl::Status BeginSegment();
  // Forgets the segments that hold only records up to `index`.
  absl::Status DropThrough(uint64_t index);

  uint64_t last_index() const;
  uint64_t bytes() const;  // of all segments

 private:
  struct Segment {
    std::string path;
    uint64_t first = 0;
    uint64_t bytes = 0;
    bool synced = false;
  };
  struct Tail;
  PushLog(const LogOptions& options, uint64_t log, EndMark end) : options_(options), log_(log), end_(std::move(end)) {}
  absl::Status StartSegmentLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status WriteLocked(std::span<const std::string_view> parts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const LogOptions options_;
  const uint64_t log_;
  mutable base::Mutex mu_;
  base::CondVar synced_;
  EndMark end_ ABSL_GUARDED_BY(mu_);
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mu_);  // the last is written to while fd_ is open
  int fd_ ABSL_GUARDED_BY(mu_) = -1;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t durable_ ABSL_GUARDED_BY(mu_) = 0;
  bool syncing_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::log
