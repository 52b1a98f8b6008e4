// The logs that a launcher writes, held as long as it lives: another job in the same folder would truncate them and
// empty the servers' data folders. Each process of a plan has a byte of LOG_DIR/.lock, so that the nodes of one job may
// share a folder; the kernel gives the bytes back when the launcher ends, also by SIGKILL, and children do not have
// them. Thread-safety: belongs to one thread. One at a time in a process.
#pragma once

#include <string>

#include "base/status.h"
#include "launch/job_plan.h"

namespace regatta::launch {

class LogLock {
 public:
  // `log_dir` exists. FailedPrecondition where another launcher holds one of the logs: names it and says what to do.
  static absl::StatusOr<LogLock> Take(const std::string& log_dir, const JobPlan& plan);
  LogLock(LogLock&& other) noexcept;
  LogLock& operator=(LogLock&&) = delete;
  ~LogLock();

 private:
  explicit LogLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace regatta::launch
