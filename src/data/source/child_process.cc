#include "data/source/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace regatta::data {
namespace {

struct Pipe {
  int read = -1, write = -1;
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
  bool Open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
};

void Close(int& fd) {
  if (fd >= 0) close(std::exchange(fd, -1));
}

// Runs in the child between vfork and exec: nothing but system calls. The error goes through the pipe.
[[noreturn]] void Exec(char* const* argv, const char* folder, const Pipe& in, const Pipe& out, const Pipe& err,
                       int report, pid_t parent) {
  setpgid(0, 0);
  // Even where we are killed with kill -9.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent && (folder[0] == '\0' || chdir(folder) == 0) && dup2(in.read, 0) >= 0 &&
      dup2(out.write, 1) >= 0 && dup2(err.write, 2) >= 0) {
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(argv[0], argv);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t n = write(report, &error, sizeof error);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::exchange(word, ""));
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == '\'' || c == '"') {
      for (++i; i < command.size() && command[i] != c; ++i) {
        if (c == '"' && command[i] == '\\' && i + 1 < command.size() && strchr("\"\\$`", command[i + 1])) ++i;
        word += command[i];
      }
      if (i == command.size())
        return absl::InvalidArgumentError(absl::StrCat("pipe_command: a quote stays open: ", base::View(command)));
    } else if (c == '\\' && i + 1 < command.size()) {
      word += command[++i];
    } else {
      word += c;
    }
  }
  if (in_word) words.push_back(word);
  if (words.empty()) return absl::InvalidArgumentError("pipe_command is empty");
  return words;
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& argv,
                                                                  const std::string& folder) {
  Pipe in, out, err, report;
  if (!in.Open() || !out.Open() || !err.Open() || !report.Open())
    return base::ErrnoStatus("cannot open pipes for", argv[0]);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = getpid();
  // vfork: a fork would copy the page tables of all our parameters. No signal handler of ours may run in the child, for
  // it shares our memory.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork();
  if (pid == 0) Exec(words.data(), folder.c_str(), in, out, err, report.write, parent);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = fork_error;
  if (pid < 0) return base::ErrnoStatus("cannot start", argv[0]);

  std::unique_ptr<ChildProcess> child(new ChildProcess);
  child->pid_ = pid;
  Close(report.write);
  int error = 0;
  ssize_t n;
  while ((n = read(report.read, &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (n == sizeof error) {
    waitpid(std::exchange(child->pid_, -1), nullptr, 0);
    errno = error;
    return base::ErrnoStatus("cannot start", argv[0]);
  }
  child->in_ = std::exchange(in.write, -1);
  child->out_ = std::exchange(out.read, -1);
  child->err_ = std::exchange(err.read, -1);
  for (const int fd : {child->in_, child->out_, child->err_}) fcntl(fd, F_SETFL, O_NONBLOCK);
  return child;
}

ChildProcess::~ChildProcess() {
  Kill();
  CloseIn(), CloseOut(), CloseErr();
}

void ChildProcess::CloseIn() { Close(in_); }
void ChildProcess::CloseOut() { Close(out_); }
void ChildProcess::CloseErr() { Close(err_); }

ssize_t ChildProcess::WriteIn(const char* data, size_t size) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t n = write(in_, data, size);
  const int error = errno;
  if (n < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE)) {
    const timespec no_time = {};
    while (sigtimedwait(&pipe_signal, nullptr, &no_time) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return n;
}

// While the leader is not waited for, its group's id cannot be another's.
void ChildProcess::Reap(int* status) {
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ChildProcess::Kill() {
  if (pid_ > 0) Reap(&status_);
}

bool ChildProcess::Ended(int* status) {
  if (pid_ > 0) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return false;
    Reap(&status_);
  }
  *status = status_;
  return true;
}

std::string DescribeStatus(int status) {
  if (WIFEXITED(status)) return absl::StrCat("exited with status ", WEXITSTATUS(status));
  return absl::StrCat("was killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
}

}  // namespace regatta::data
