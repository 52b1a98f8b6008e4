#include "launch/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/open_file.h"
#include "base/printable.h"

namespace regatta::launch {
namespace {

constexpr off_t kMaxBytes = 8192;

// The last bytes of the file; where they begin inside a line, "…" stands for the part before.
std::string LastBytes(const std::string& path) {
  const int fd = base::OpenOwn(path, O_RDONLY).value_or(-1);
  if (fd < 0) return "";
  struct stat info {};
  std::string bytes;
  if (fstat(fd, &info) == 0 && info.st_size > 0) {
    const off_t start = std::max<off_t>(0, info.st_size - kMaxBytes);
    bytes.resize(static_cast<size_t>(info.st_size - start));
    const ssize_t n = pread(fd, bytes.data(), bytes.size(), start);
    bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
    if (start > 0) bytes.insert(0, "…");
  }
  close(fd);
  return bytes;
}

}  // namespace

std::string LastLines(const std::string& path, int lines, const std::string& indent) {
  std::string bytes = LastBytes(path);
  while (!bytes.empty() && bytes.back() == '\n') bytes.pop_back();
  if (bytes.empty()) return "";
  const std::vector<absl::string_view> all = absl::StrSplit(bytes, '\n');
  std::string text;
  for (size_t i = all.size() - std::min(all.size(), static_cast<size_t>(lines)); i < all.size(); ++i)
    absl::StrAppend(&text, indent, base::Printable({all[i].data(), all[i].size()}), "\n");
  return text;
}

}  // namespace regatta::launch
