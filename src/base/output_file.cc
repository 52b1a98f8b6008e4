#include "base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace regatta::base {
namespace fs = std::filesystem;
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows

// What `path` stands for. A link that leads nowhere names the file to be made.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  fs::path at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(at, error))) return at.string();
    const fs::path to = fs::read_symlink(at, error);
    if (error) {
      errno = error.value();
      return ErrnoStatus("cannot read the link", at.string());
    }
    at = at.parent_path() / to;  // an absolute `to` replaces the folder
  }
  errno = ELOOP;
  return ErrnoStatus("cannot open", path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path, NamedBy by) {
  std::string target = path;
  bool special = false;
  if (by == NamedBy::kUser) {
    ASSIGN_OR_RETURN(target, FollowLinks(path));
  }
  struct stat info;
  if (lstat(target.c_str(), &info) == 0) special = !S_ISREG(info.st_mode) && by == NamedBy::kUser;
  if (special && S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is a folder; name a file"));
  ASSIGN_OR_RETURN(auto file,
                   special ? AppendFile::Create(target, NamedBy::kUser) : AppendFile::Create(target + ".tmp"));
  return std::unique_ptr<OutputFile>(new OutputFile(path, std::move(target), std::move(file)));
}

OutputFile::~OutputFile() {
  if (!committed_ && !written_through()) unlink(file_->path().c_str());
}

absl::Status OutputFile::Commit(Durability durability) {
  const bool through = written_through();
  if (durability == Durability::kSynced && !through) RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(file_->Close());
  if (!through) RETURN_IF_ERROR(RenameDurably(file_->path(), target_));
  committed_ = true;
  return absl::OkStatus();
}

}  // namespace regatta::base
