// The signals a launcher lives by, as a file descriptor: children that ended, Ctrl+C, SIGTERM, a closed terminal.
// Thread-safety: belongs to one thread. One at a time: signals belong to the process.
#pragma once

#include <signal.h>

#include <vector>

#include "base/status.h"

namespace regatta::launch {

class SignalInbox {
 public:
  // From here on the signals wait in the inbox. SIGHUP stays ignored where it was (nohup); SIGPIPE becomes ignored.
  static absl::StatusOr<SignalInbox> Open();
  SignalInbox(SignalInbox&& other) noexcept;
  SignalInbox& operator=(SignalInbox&&) = delete;
  ~SignalInbox();

  int fd() const { return fd_; }
  // Those that came since the last call.
  std::vector<int> Take();

 private:
  SignalInbox(int fd, const sigset_t& before) : fd_(fd), before_(before) {}

  int fd_;
  sigset_t before_;
};

}  // namespace regatta::launch
