// Files as the rest of Regatta uses them: whole reads, durable appends, atomic replacement. Every write, fsync and
// rename passes a failpoint (file.write, file.fsync, file.rename).
// Thread-safety: an AppendFile belongs to one thread; the free functions are concurrent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/open_file.h"
#include "base/status.h"

namespace regatta::base {

// Regular files only (OpenForReading).
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = UINT64_MAX);
// A file that the program itself made: a symbolic link is an error (OpenOwn).
absl::StatusOr<std::string> ReadOwnFile(const std::string& path, uint64_t max_bytes = UINT64_MAX);
// The rest of an open file; `path` is for messages.
absl::StatusOr<std::string> ReadOpenFile(int fd, const std::string& path, uint64_t max_bytes = UINT64_MAX);

// For files that the program names (NamedBy::kProgram); others: OutputFile. Writes beside `path`, syncs, renames over
// it and syncs the folder: a reader sees the old or the new bytes. A symbolic link is replaced.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

absl::Status RenameDurably(const std::string& from, const std::string& to);
// Swaps two existing paths in one step.
absl::Status ExchangeDurably(const std::string& a, const std::string& b);
absl::Status SyncFolder(const std::string& folder);
absl::Status MakeFolders(const std::string& path);
// For folders that the program names: what is there must be a folder, and no link (CheckOwnFolder).
absl::Status MakeOwnFolder(const std::string& path);
// ALREADY_EXISTS where something has the name, be it a link.
absl::Status MakeNewFolder(const std::string& path);
// Links are removed, not followed.
absl::Status RemoveTree(const std::string& path);
bool Exists(const std::string& path);
// Bytes a user may still write on the disk that holds `path` (or its nearest existing parent).
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);

// Buffered append-only writing.
class AppendFile {
 public:
  // An empty file under that name; what the user named may also be a device or a FIFO.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Create(const std::string& path, NamedBy by = NamedBy::kProgram);
  ~AppendFile();

  absl::Status Append(const void* data, size_t size);
  absl::Status Append(std::string_view bytes) { return Append(bytes.data(), bytes.size()); }
  absl::Status Flush();
  // Lets the disk begin with what was written so far, so that a later Sync waits less. Promises nothing.
  void StartWriteback();
  // Afterwards everything appended survives a power loss.
  absl::Status Sync();
  absl::Status Close();
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int fd);
  absl::Status Write(const char* data, size_t size);

  const std::string path_;
  int fd_;
  uint64_t size_ = 0;
  uint64_t started_ = 0;  // bytes given to StartWriteback
  std::string buffer_;
};

}  // namespace regatta::base
