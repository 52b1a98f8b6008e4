#include "checkpoint/root_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/strip.h"
#include "base/open_file.h"

namespace regatta::checkpoint {

absl::StatusOr<RootLock> RootLock::Acquire(const std::string& root) {
  const std::string path = root + "/LOCK";
  ASSIGN_OR_RETURN(const int fd, base::OpenOwn(path, O_RDWR | O_CREAT, 0666));
  RootLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::ErrnoStatus("cannot lock", path);
    char pid[32] = {};
    const ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
    absl::string_view owner(pid, n > 0 ? static_cast<size_t>(n) : 0);
    absl::ConsumeSuffix(&owner, "\n");
    return absl::FailedPreconditionError(
        absl::StrCat(root, " is in use by process ", owner.empty() ? "(unknown)" : owner, " (it holds ", path,
                     "): wait for it, stop it, or set another runner.model_save_path"));
  }
  // The pid is for the message above only.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return base::ErrnoStatus("cannot write", path);
  return lock;
}

RootLock::~RootLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace regatta::checkpoint
