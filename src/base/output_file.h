// A file that somebody asked for by name: whole under that name once it is committed, and no trace of it otherwise. The
// bytes go to <name>.tmp beside it, which is then renamed over it. A symlink is followed, so that it stays one; what
// exists and is no regular file (a device, a FIFO) is written through and stays what it is. <name>.tmp is the program's
// own name: a link that somebody planted there is removed.
// Thread-safety: belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace regatta::base {

class OutputFile {
 public:
  enum class Durability {
    kSynced,  // survives a power loss
    kNamed    // complete for every reader from now on, on the disk when the system likes
  };

  // Of a name that the program makes up (kProgram) a link is replaced, not followed.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path, NamedBy by = NamedBy::kUser);
  ~OutputFile();  // removes what was not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Append(const void* data, size_t size) { return file_->Append(data, size); }
  absl::Status Append(std::string_view bytes) { return file_->Append(bytes); }
  absl::Status Commit(Durability durability);
  // Bytes appended so far.
  uint64_t size() const { return file_->size(); }
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, std::string target, std::unique_ptr<AppendFile> file)
      : path_(std::move(path)), target_(std::move(target)), file_(std::move(file)) {}
  bool written_through() const { return file_->path() == target_; }

  const std::string path_;    // as it was asked for
  const std::string target_;  // behind the symlinks
  const std::unique_ptr<AppendFile> file_;
  bool committed_ = false;
};

}  // namespace regatta::base
