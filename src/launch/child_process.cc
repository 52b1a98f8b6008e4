#include "launch/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/open_file.h"

namespace regatta::launch {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void ResetSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Between fork and exec. Writes errno to `report` and ends where the program cannot run.
[[noreturn]] void Become(char* const* argv, char* const* environment, int log, int null, int report, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above took effect
  ResetSignals();
  if (dup2(null, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
    execve(argv[0], argv, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

// Files that are open for a moment while a child starts.
class OpenFiles {
 public:
  ~OpenFiles() {
    for (const int fd : {log, null, report[0], report[1]})
      if (fd >= 0) close(fd);
  }
  absl::Status Open(const std::string& path, bool keep) {
    ASSIGN_OR_RETURN(log, base::OpenOwn(path, O_WRONLY | O_CREAT | O_APPEND, 0644));
    if (!keep && ftruncate(log, 0) != 0) return base::ErrnoStatus("cannot empty", path);
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0) return base::ErrnoStatus("cannot open", "/dev/null");
    if (pipe2(report.data(), O_CLOEXEC) != 0) return base::ErrnoStatus("cannot make a pipe for", path);
    return absl::OkStatus();
  }

  int log = -1, null = -1;
  std::array<int, 2> report = {-1, -1};
};

}  // namespace

absl::StatusOr<pid_t> Start(const ChildProgram& program) {
  OpenFiles files;
  RETURN_IF_ERROR(files.Open(program.log, program.keep_log));
  const std::vector<char*> argv = Pointers(program.argv), environment = Pointers(program.environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return base::ErrnoStatus("cannot start", program.argv[0]);
  if (pid == 0) Become(argv.data(), environment.data(), files.log, files.null, files.report[1], parent);
  setpgid(pid, pid);  // here too: whichever process is first, the group exists when Start returns
  close(files.report[1]);
  files.report[1] = -1;
  int error = 0;
  ssize_t n = 0;
  while ((n = read(files.report[0], &error, sizeof error)) < 0 && errno == EINTR) continue;
  if (n == 0) return pid;
  waitpid(pid, nullptr, 0);
  errno = error;
  return base::ErrnoStatus("cannot run", program.argv[0]);
}

void SignalGroup(pid_t leader, int signal) {
  if (kill(-leader, signal) != 0) kill(leader, signal);  // it went to another group
}

bool WasKilled(int status) {
  if (!WIFSIGNALED(status)) return false;
  const int number = WTERMSIG(status);
  return number != SIGINT && number != SIGTERM && number != SIGHUP;
}

std::string DescribeStatus(int status) {
  if (!WIFSIGNALED(status)) return absl::StrCat("exited with code ", WEXITSTATUS(status));
  const char* name = sigabbrev_np(WTERMSIG(status));
  return absl::StrCat(WasKilled(status) ? "was killed by signal " : "was stopped by signal ", WTERMSIG(status),
                      name == nullptr ? "" : absl::StrCat(" (SIG", name, ")"));
}

int ExitCodeOf(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace regatta::launch
