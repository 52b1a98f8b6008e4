#include "base/standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace regatta::base {
namespace {

// An earlier error has no errno any more, so the pipe itself is asked.
bool ReaderHasLeft() {
  pollfd out = {STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

void OpenStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd) return;  // the lowest that is free
  }
}

absl::Status FlushStandardOutput() {
  if (std::fflush(stdout) != 0 && errno != EPIPE) return ErrnoStatus("cannot write to", "standard output");
  if (std::ferror(stdout) == 0 || ReaderHasLeft()) return absl::OkStatus();
  return absl::DataLossError("cannot write to standard output: some of it is lost (is the disk full?)");
}

int ExitCodeOf(int code) {
  const absl::Status status = FlushStandardOutput();
  if (code != 0 || status.ok()) return code;
  std::fprintf(stderr, "regatta: error: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace regatta::base
