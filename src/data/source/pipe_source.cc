#include "data/source/pipe_source.h"

#include <glog/logging.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "data/source/child_process.h"

namespace regatta::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPipeBytes = 64 << 10;
constexpr int kPollMillis = 50;  // how soon a stop is seen
constexpr int kShownErrorLines = 20;
constexpr size_t kKeptErrorBytes = 2048;

class PipeSource final : public ByteSource {
 public:
  PipeSource(std::unique_ptr<ByteSource> file, std::string path, const PipeOptions& options,
             const std::atomic<bool>& stop, std::unique_ptr<ChildProcess> child)
      : file_(std::move(file)),
        path_(std::move(path)),
        options_(options),
        stop_(stop),
        child_(std::move(child)),
        input_(kPipeBytes) {}

  absl::StatusOr<size_t> Read(char* to, size_t size) override;
  uint64_t disk_bytes() const override { return file_->disk_bytes(); }

 private:
  absl::Status Feed();
  absl::StatusOr<size_t> Drain(char* to, size_t size);
  void DrainErrors();
  void LogErrorLines();
  absl::Status Finish();
  absl::Status Error(absl::StatusCode code, std::string_view what) const;

  // Constant after construction.
  const std::unique_ptr<ByteSource> file_;
  const std::string path_;
  const PipeOptions options_;
  const std::atomic<bool>& stop_;

  const std::unique_ptr<ChildProcess> child_;
  std::vector<char> input_;
  size_t input_at_ = 0, input_end_ = 0;
  bool closed_early_ = false;  // the child closed its stdin with input left
  bool moved_ = false;         // something was read or written since last looked at
  std::string errors_;         // the last of what it wrote to stderr
  std::string error_line_;
  int error_lines_ = 0;
};

absl::Status PipeSource::Error(absl::StatusCode code, std::string_view what) const {
  std::string message = absl::StrCat("pipe_command '", options_.command, "' on ", path_, ": it ", base::View(what));
  if (!errors_.empty()) absl::StrAppend(&message, "; its stderr:\n", errors_);
  return absl::Status(code, message);
}

absl::Status PipeSource::Feed() {
  if (input_at_ == input_end_) {
    ASSIGN_OR_RETURN(input_end_, file_->Read(input_.data(), input_.size()));
    input_at_ = 0;
    if (input_end_ == 0) {
      child_->CloseIn();
      return absl::OkStatus();
    }
  }
  const ssize_t n = child_->WriteIn(input_.data() + input_at_, input_end_ - input_at_);
  if (n > 0) {
    input_at_ += static_cast<size_t>(n);
    moved_ = true;
  } else if (n < 0 && errno == EPIPE) {
    closed_early_ = true;
    child_->CloseIn();
  } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
    return base::ErrnoStatus("cannot write to pipe_command", options_.command);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> PipeSource::Drain(char* to, size_t size) {
  const ssize_t n = read(child_->out(), to, size);
  if (n > 0) {
    moved_ = true;
    return static_cast<size_t>(n);
  }
  if (n == 0) {
    child_->CloseOut();
  } else if (errno != EAGAIN && errno != EINTR) {
    return base::ErrnoStatus("cannot read from pipe_command", options_.command);
  }
  return 0;
}

void PipeSource::LogErrorLines() {
  for (size_t newline; (newline = error_line_.find('\n')) != error_line_.npos; error_line_.erase(0, newline + 1)) {
    if (++error_lines_ <= kShownErrorLines)
      LOG(WARNING) << "pipe_command '" << options_.command << "' on " << path_ << ": "
                   << base::Printable(error_line_.substr(0, newline));
    if (error_lines_ == kShownErrorLines) LOG(WARNING) << "more lines of its stderr are not shown";
  }
  if (error_line_.size() > kKeptErrorBytes) error_line_ = error_line_.substr(0, kKeptErrorBytes) + "…\n";
}

void PipeSource::DrainErrors() {
  char bytes[4096];
  const ssize_t n = read(child_->err(), bytes, sizeof bytes);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    child_->CloseErr();
    if (!error_line_.empty()) error_line_ += '\n';
  } else if (n > 0) {
    errors_.append(bytes, static_cast<size_t>(n));
    if (errors_.size() > kKeptErrorBytes) errors_.erase(0, errors_.size() - kKeptErrorBytes);
    error_line_.append(bytes, static_cast<size_t>(n));
  }
  LogErrorLines();
}

// The child has closed its stdout: how did it end?
absl::Status PipeSource::Finish() {
  int status = 0;
  if (!child_->Ended(&status)) return absl::OkStatus();
  while (child_->err() >= 0) {
    pollfd errors = {child_->err(), POLLIN, 0};
    if (poll(&errors, 1, 0) <= 0) break;
    DrainErrors();
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Error(absl::StatusCode::kAborted, DescribeStatus(status));
  if (closed_early_ || child_->in() >= 0)
    return Error(absl::StatusCode::kAborted, absl::StrCat("ended before it had read its input (", file_->disk_bytes(),
                                                          " bytes of the file were offered)"));
  return absl::OkStatus();
}

absl::StatusOr<size_t> PipeSource::Read(char* to, size_t size) {
  Clock::time_point last_move = Clock::now();
  while (true) {
    if (stop_) return absl::CancelledError("stopped");
    pollfd fds[3] = {{child_->in(), POLLOUT, 0}, {child_->out(), POLLIN, 0}, {child_->err(), POLLIN, 0}};
    const int ready = poll(fds, 3, kPollMillis);
    if (ready < 0 && errno != EINTR) return base::ErrnoStatus("cannot poll pipe_command", options_.command);
    if (ready > 0) {
      if (fds[2].revents != 0) DrainErrors();
      if (fds[0].revents != 0) RETURN_IF_ERROR(Feed());
      if (fds[1].revents != 0) {
        ASSIGN_OR_RETURN(const size_t n, Drain(to, size));
        if (n > 0) return n;
      }
    }
    if (child_->out() < 0) {
      int status = 0;
      RETURN_IF_ERROR(Finish());
      if (child_->Ended(&status)) return 0;
    }
    if (std::exchange(moved_, false)) last_move = Clock::now();
    if (std::chrono::duration<double>(Clock::now() - last_move).count() > options_.timeout_seconds) {
      child_->Kill();
      return Error(absl::StatusCode::kDeadlineExceeded, absl::StrCat("neither read nor printed anything for ",
                                                                     options_.timeout_seconds, " s and was killed"));
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenPipe(std::unique_ptr<ByteSource> file, const std::string& path,
                                                     const PipeOptions& options, const std::atomic<bool>& stop) {
  std::vector<std::string> argv = {"/bin/sh", "-c", options.command};
  if (options.shell == PipeShell::kNo) {
    ASSIGN_OR_RETURN(argv, SplitWords(options.command));
  }
  auto child = ChildProcess::Start(argv, options.folder);
  if (!child.ok())
    return absl::Status(child.status().code(),
                        absl::StrCat("pipe_command '", options.command, "' on ", path, " (in folder ",
                                     options.folder.empty() ? "." : options.folder, "): ", child.status().message(),
                                     "; an empty pipe_command uses the built-in parser"));
  return std::make_unique<PipeSource>(std::move(file), path, options, stop, std::move(*child));
}

}  // namespace regatta::data
