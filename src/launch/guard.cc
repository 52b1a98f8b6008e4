#include "launch/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace regatta::launch {
namespace {

// What goes through the pipe is the leaders of groups, and this.
constexpr pid_t kJobDone = 0;

[[noreturn]] void Watch(int pipe, JobMark mark) {
  setsid();  // a Ctrl+C at the terminal is for the launcher
  prctl(PR_SET_NAME, "regatta-guard");
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) signal(number, SIG_IGN);
  // A reader that waits for the end of the launcher's output must not wait for this process.
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (pipe > 3) close_range(3, static_cast<unsigned>(pipe) - 1, 0);
  close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
  if (chdir("/") != 0) _exit(1);  // cannot happen; a folder of the user's must not stay busy
  while (true) {
    pid_t told = kJobDone;
    const ssize_t n = read(pipe, &told, sizeof told);
    if (n < 0 && errno == EINTR) continue;
    if (n == sizeof told && told == kJobDone) _exit(0);
    if (n != sizeof told) break;
    mark.AddGroup(told);
  }
  mark.End(std::chrono::milliseconds(0));
  _exit(0);
}

}  // namespace

absl::StatusOr<Guard> Guard::Start(const JobMark& mark) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return base::ErrnoStatus("cannot make a pipe for", "the guard");
  const pid_t pid = fork();
  if (pid < 0) return base::ErrnoStatus("cannot start", "the guard");
  if (pid == 0) {
    close(ends[1]);
    Watch(ends[0], mark);
  }
  close(ends[0]);
  return Guard(ends[1], pid);
}

Guard::Guard(Guard&& other) noexcept : pipe_(std::exchange(other.pipe_, -1)), pid_(other.pid_) {}

void Guard::AddGroup(pid_t leader) const {
  [[maybe_unused]] const ssize_t written = write(pipe_, &leader, sizeof leader);
}

Guard::~Guard() {
  if (pipe_ < 0) return;
  AddGroup(kJobDone);
  close(pipe_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace regatta::launch
