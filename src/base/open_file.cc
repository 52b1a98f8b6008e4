#include "base/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/printable.h"

namespace regatta::base {
namespace {

const char* KindOf(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISREG(mode)) return "a file";
  return "a device";
}

absl::Status NotRegular(const std::string& path, mode_t mode) {
  if (S_ISDIR(mode)) return absl::InvalidArgumentError(absl::StrCat(Printable(path), " is a folder, not a file"));
  return absl::InvalidArgumentError(absl::StrCat(Printable(path), " is not a regular file (", KindOf(mode), ")"));
}

// What open(2) failed with; where the kind of the file is the cause, that is told.
absl::Status OpenError(const char* what, const std::string& path) {
  const int error = errno;
  struct stat info {};
  if ((error == ENXIO || error == ELOOP || error == EISDIR) && lstat(path.c_str(), &info) == 0 &&
      !S_ISREG(info.st_mode)) {
    const absl::Status wrong = NotRegular(path, info.st_mode);
    return S_ISLNK(info.st_mode) ? absl::InvalidArgumentError(absl::StrCat(wrong.message(), ": remove it")) : wrong;
  }
  errno = error;
  return ErrnoStatus(what, path);
}

absl::StatusOr<int> OpenRegular(const std::string& path, int flags, mode_t mode) {
  // Not blocking: opening a FIFO would wait for its other end.
  const int fd = open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, mode);
  if (fd < 0) return OpenError("cannot open", path);
  absl::Status status = CheckRegularFile(fd, path);
  if (status.ok() && fcntl(fd, F_SETFL, flags & O_APPEND) != 0) status = ErrnoStatus("cannot open", path);
  if (status.ok()) return fd;
  close(fd);
  return status;
}

}  // namespace

absl::Status CheckRegularFile(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return ErrnoStatus("cannot look at", path);
  return S_ISREG(info.st_mode) ? absl::OkStatus() : NotRegular(path, info.st_mode);
}

absl::StatusOr<int> OpenForReading(const std::string& path) { return OpenRegular(path, O_RDONLY, 0); }

absl::StatusOr<int> OpenOwn(const std::string& path, int flags, mode_t mode) {
  return OpenRegular(path, flags | O_NOFOLLOW, mode);
}

absl::Status CheckOwnFolder(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return ErrnoStatus("cannot look at", path);
  if (S_ISDIR(info.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(path), " is not a folder (", KindOf(info.st_mode),
                   "): remove it, and let nobody else write to the folder that it is in"));
}

absl::StatusOr<int> CreateOwn(const std::string& path, mode_t mode) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return OpenError("cannot replace", path);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return ErrnoStatus("cannot create", path);
  return fd;
}

}  // namespace regatta::base
