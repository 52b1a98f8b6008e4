#include "launch/log_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/open_file.h"

namespace regatta::launch {
namespace {

struct flock ByteOf(const PlannedProcess& process) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = 2 * process.index + (process.role == cluster::Role::kServer ? 0 : 1);
  range.l_len = 1;
  return range;
}

// The holder of `range`, 0 where nobody holds it any more, -1 where it is none of this machine's.
pid_t HolderOf(int fd, struct flock range) {
  if (fcntl(fd, F_GETLK, &range) != 0) return -1;
  if (range.l_type == F_UNLCK) return 0;
  return range.l_pid > 0 ? range.l_pid : -1;
}

}  // namespace

absl::StatusOr<LogLock> LogLock::Take(const std::string& log_dir, const JobPlan& plan) {
  const std::string path = absl::StrCat(log_dir, "/.lock");
  ASSIGN_OR_RETURN(const int fd, base::OpenOwn(path, O_RDWR | O_CREAT, 0644));
  LogLock lock(fd);
  for (const PlannedProcess& process : plan.processes) {
    struct flock range = ByteOf(process);
    while (fcntl(lock.fd_, F_SETLK, &range) != 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EACCES) return base::ErrnoStatus("cannot lock", path);
      const pid_t holder = HolderOf(lock.fd_, range);
      if (holder == 0) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("the folder ", log_dir, " belongs to a job that runs: its launcher (",
                       holder > 0 ? absl::StrCat("pid ", holder) : "of another machine or container", ") writes ",
                       process.log, "; wait for it, stop it, or choose another folder with --log_dir"));
    }
  }
  return lock;
}

LogLock::LogLock(LogLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

LogLock::~LogLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace regatta::launch
