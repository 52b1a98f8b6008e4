#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/failpoint.h"

namespace regatta::base {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBufferBytes = 1 << 20;

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

absl::StatusOr<std::string> ReadOpenFile(int fd, const std::string& path, uint64_t max_bytes) {
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read", path);
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
    if (bytes.size() > max_bytes)
      return absl::OutOfRangeError(absl::StrCat(path, " is larger than the ", max_bytes, " bytes allowed"));
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const int fd, OpenForReading(path));
  absl::StatusOr<std::string> bytes = ReadOpenFile(fd, path, max_bytes);
  close(fd);
  return bytes;
}

absl::StatusOr<std::string> ReadOwnFile(const std::string& path, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const int fd, OpenOwn(path, O_RDONLY));
  absl::StatusOr<std::string> bytes = ReadOpenFile(fd, path, max_bytes);
  close(fd);
  return bytes;
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".tmp";
  ASSIGN_OR_RETURN(const auto file, AppendFile::Create(fresh));
  absl::Status status = file->Append(bytes);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok()) status = RenameDurably(fresh, path);
  if (!status.ok()) unlink(fresh.c_str());
  return status;
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Failpoint("file.rename"));
  if (rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(absl::StrCat("cannot rename ", from, " to"), to);
  return SyncFolder(ParentOf(to));
}

absl::Status ExchangeDurably(const std::string& a, const std::string& b) {
  RETURN_IF_ERROR(Failpoint("file.rename"));
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0)
    return ErrnoStatus(absl::StrCat("cannot exchange ", a, " with"), b);
  return SyncFolder(ParentOf(b));
}

absl::Status SyncFolder(const std::string& folder) {
  RETURN_IF_ERROR(Failpoint("file.fsync"));
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus("cannot open", folder);
  const int rc = fsync(fd);
  absl::Status status = rc == 0 ? absl::OkStatus() : ErrnoStatus("cannot sync", folder);
  close(fd);
  return status;
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return absl::OkStatus();
  errno = error.value();
  return ErrnoStatus("cannot create folder", path);
}

absl::Status MakeOwnFolder(const std::string& path) {
  const absl::Status there = CheckOwnFolder(path);
  if (!absl::IsNotFound(there)) return there;
  RETURN_IF_ERROR(MakeFolders(path));
  return CheckOwnFolder(path);
}

absl::Status MakeNewFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot create folder", path);
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return absl::OkStatus();
  errno = error.value();
  return ErrnoStatus("cannot remove", path);
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  while (!fs::exists(at, error) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  struct statvfs info;
  if (statvfs(at.c_str(), &info) != 0) return ErrnoStatus("cannot read free space of", at.string());
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

AppendFile::AppendFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) { buffer_.reserve(kBufferBytes); }

AppendFile::~AppendFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Create(const std::string& path, NamedBy by) {
  if (by == NamedBy::kProgram) {
    ASSIGN_OR_RETURN(const int fd, CreateOwn(path, 0666));
    return std::unique_ptr<AppendFile>(new AppendFile(path, fd));
  }
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus("cannot create", path);
  return std::unique_ptr<AppendFile>(new AppendFile(path, fd));
}

absl::Status AppendFile::Write(const char* data, size_t size) {
  RETURN_IF_ERROR(Failpoint("file.write"));
  while (size > 0) {
    const ssize_t n = write(fd_, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write", path_);
    data += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status AppendFile::Append(const void* data, size_t size) {
  size_ += size;
  if (buffer_.size() + size <= kBufferBytes) {
    buffer_.append(static_cast<const char*>(data), size);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Flush());
  if (size >= kBufferBytes) return Write(static_cast<const char*>(data), size);
  buffer_.append(static_cast<const char*>(data), size);
  return absl::OkStatus();
}

absl::Status AppendFile::Flush() {
  if (buffer_.empty()) return absl::OkStatus();
  absl::Status status = Write(buffer_.data(), buffer_.size());
  buffer_.clear();
  return status;
}

void AppendFile::StartWriteback() {
  const uint64_t written = size_ - buffer_.size();
  sync_file_range(fd_, static_cast<off_t>(started_), static_cast<off_t>(written - started_), SYNC_FILE_RANGE_WRITE);
  started_ = written;
}

absl::Status AppendFile::Sync() {
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(Failpoint("file.fsync"));
  if (fsync(fd_) != 0) return ErrnoStatus("cannot sync", path_);
  return absl::OkStatus();
}

absl::Status AppendFile::Close() {
  RETURN_IF_ERROR(Flush());
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0) return ErrnoStatus("cannot close", path_);
  return absl::OkStatus();
}

}  // namespace regatta::base
