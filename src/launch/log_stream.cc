#include "launch/log_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/open_file.h"

namespace regatta::launch {
namespace {

// A pipe that poll calls writable takes this much without blocking.
constexpr size_t kPiece = 4096;
constexpr int kDrainMs = 2000;

bool Writable(int fd, int timeout_ms) {
  pollfd wait{fd, POLLOUT, 0};
  return poll(&wait, 1, timeout_ms) > 0;
}

}  // namespace

LogStream::~LogStream() {
  if (file_ >= 0) close(file_);
}

absl::Status LogStream::Open(const std::string& path) {
  ASSIGN_OR_RETURN(file_, base::OpenOwn(path, O_RDONLY));
  return absl::OkStatus();
}

LogStream::State LogStream::Pump() {
  std::array<char, kPiece> piece;
  while (file_ >= 0 && !closed_) {
    if (!Writable(out_, 0)) return State::kOutputBusy;
    const ssize_t n = read(file_, piece.data(), piece.size());
    if (n <= 0) return State::kCaughtUp;
    for (ssize_t done = 0; done < n && !closed_;) {
      const ssize_t written = write(out_, piece.data() + done, static_cast<size_t>(n - done));
      if (written >= 0) {
        done += written;
      } else if (errno == EAGAIN) {
        Writable(out_, -1);
      } else if (errno != EINTR) {
        closed_ = true;
      }
    }
  }
  return State::kCaughtUp;
}

void LogStream::Drain() {
  while (Pump() == State::kOutputBusy)
    if (!Writable(out_, kDrainMs)) return;
}

}  // namespace regatta::launch
