// What a ledger was acknowledged, in a file of its own, outside of the path of the faults.
// Thread-safety: belongs to one thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace regatta::fault {

// A line for every acknowledged push, which is there when this process is killed.
class AckFile {
 public:
  static absl::StatusOr<AckFile> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return base::ErrnoStatus("cannot open", path);
    return AckFile(path, fd);
  }
  AckFile(AckFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  ~AckFile() {
    if (fd_ >= 0) close(fd_);
  }
  absl::Status Note(uint64_t number) {
    const std::string line = absl::StrCat(number, "\n");
    if (write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return absl::OkStatus();
    return base::ErrnoStatus("cannot write", path_);
  }
  static absl::StatusOr<std::vector<uint64_t>> Read(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
    std::vector<uint64_t> numbers;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      uint64_t number = 0;
      if (!absl::SimpleAtoi(line, &number)) return absl::DataLossError(absl::StrCat(path, ": '", line, "'"));
      numbers.push_back(number);
    }
    return numbers;
  }

 private:
  AckFile(const std::string& path, int fd) : path_(path), fd_(fd) {}
  std::string path_;
  int fd_;
};

}  // namespace regatta::fault
