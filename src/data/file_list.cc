#include "data/file_list.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"

namespace regatta::data {
namespace fs = std::filesystem;
namespace {

bool IsHidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// False also where it cannot be told, as of a link that leads to itself: CheckRegular says why.
bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

absl::Status AddFolder(const std::string& folder, std::vector<std::string>* files) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (!IsFolder(it->path()) && !IsHidden(it->path())) files->push_back(it->path().string());
  if (error) return absl::PermissionDeniedError(absl::StrCat("cannot list ", folder, ": ", error.message()));
  return absl::OkStatus();
}

void AddGlob(const std::string& pattern, std::vector<std::string>* files) {
  glob_t found = {};
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      if (!IsFolder(found.gl_pathv[i]) && !IsHidden(found.gl_pathv[i])) files->push_back(found.gl_pathv[i]);
  globfree(&found);
}

// The number behind the last character that is no digit, compression endings aside.
bool NumericSuffix(std::string_view path, uint64_t* number) {
  for (const std::string_view ending : {".gz", ".zst"})
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  const size_t digits = path.find_last_not_of("0123456789") + 1;
  return absl::SimpleAtoi(base::View(path.substr(digits)), number);
}

}  // namespace

absl::Status CheckRegular(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return base::ErrnoStatus("cannot open", path);
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is a folder, not a file"));
  const char* const kind = S_ISFIFO(info.st_mode) ? "FIFO" : S_ISSOCK(info.st_mode) ? "socket" : "device";
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is a ", kind,
                   ", not a regular file: data is read more than once and by several threads. "
                   "Write it to a file, or move it away; a stream can be made of files by pipe_command"));
}

absl::StatusOr<std::vector<std::string>> ExpandFiles(const std::string& pattern) {
  std::vector<std::string> files;
  if (pattern.empty()) return absl::InvalidArgumentError("no data path is given");
  std::error_code error;
  if (IsFolder(pattern)) {
    RETURN_IF_ERROR(AddFolder(pattern, &files));
    if (files.empty()) return absl::NotFoundError(absl::StrCat("folder ", pattern, " holds no files"));
  } else if (fs::exists(fs::symlink_status(pattern, error))) {
    files.push_back(pattern);
  } else {
    AddGlob(pattern, &files);
    if (files.empty())
      return absl::NotFoundError(
          absl::StrCat("no file matches '", pattern, "': it is neither a file, a folder nor a glob with a match"));
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) RETURN_IF_ERROR(CheckRegular(file));
  return files;
}

absl::StatusOr<std::vector<std::string>> SplitFiles(const std::vector<std::string>& files, int index, int count,
                                                    FileSplit split) {
  if (count < 1 || index < 0 || index >= count)
    return absl::InvalidArgumentError(absl::StrCat("worker ", index, " of ", count, " is none"));
  std::vector<std::string> mine;
  if (split == FileSplit::kContiguous) {
    const size_t n = files.size(), i = static_cast<size_t>(index), workers = static_cast<size_t>(count);
    const size_t begin = i * (n / workers) + std::min(i, n % workers);
    const size_t size = n / workers + (i < n % workers ? 1 : 0);
    mine.assign(files.begin() + static_cast<ptrdiff_t>(begin), files.begin() + static_cast<ptrdiff_t>(begin + size));
    return mine;
  }
  for (const std::string& file : files) {
    uint64_t number = 0;
    if (!NumericSuffix(file, &number))
      return absl::InvalidArgumentError(
          absl::StrCat(file, " has no numeric suffix, which runner.file_split: mod splits by; use contiguous"));
    if (number % static_cast<uint64_t>(count) == static_cast<uint64_t>(index)) mine.push_back(file);
  }
  return mine;
}

}  // namespace regatta::data
