#include "launch/signal_inbox.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace regatta::launch {

absl::StatusOr<SignalInbox> SignalInbox::Open() {
  sigset_t wanted, before;
  sigemptyset(&wanted);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM}) {
    signal(number, SIG_DFL);  // a shell starts background jobs with SIGINT ignored; an ignored signal never arrives
    sigaddset(&wanted, number);
  }
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&wanted, SIGHUP);
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &wanted, &before);
  const int fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return base::ErrnoStatus("cannot wait for", "signals");
  return SignalInbox(fd, before);
}

SignalInbox::SignalInbox(SignalInbox&& other) noexcept : fd_(std::exchange(other.fd_, -1)), before_(other.before_) {}

SignalInbox::~SignalInbox() {
  if (fd_ < 0) return;
  close(fd_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<int> SignalInbox::Take() {
  std::vector<int> numbers;
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info) numbers.push_back(static_cast<int>(info.ssi_signo));
  return numbers;
}

}  // namespace regatta::launch
