// A command that runs as our child, with pipes to its stdin and from its stdout and stderr.
// Thread-safety: belongs to one thread.
// Invariant: the child is the leader of its own process group, and the whole group is dead once the object is.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regatta::data {

// Words as a shell splits them: blanks separate, '…' and "…" quote, \ escapes. An error at an open quote.
absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view command);

class ChildProcess {
 public:
  // Starts argv[0], found by PATH, in `folder` ("" = ours).
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv,
                                                             const std::string& folder);
  ~ChildProcess();  // kills what still runs

  // Our ends of the pipes, non-blocking; -1 once closed.
  int in() const { return in_; }
  int out() const { return out_; }
  int err() const { return err_; }
  void CloseIn();
  void CloseOut();
  void CloseErr();

  // Writes without ever raising SIGPIPE; -1 with errno as write().
  ssize_t WriteIn(const char* data, size_t size);

  // Kills the group and waits for the child. Afterwards it has no status to speak of.
  void Kill();
  // Whether the child has ended; then *status is as waitpid gives it. Does not wait.
  bool Ended(int* status);

 private:
  ChildProcess() = default;
  void Reap(int* status);

  pid_t pid_ = -1;  // -1 once waited for
  int status_ = 0;
  int in_ = -1, out_ = -1, err_ = -1;
};

// "exited with status 3", "was killed by signal 9 (Killed)".
std::string DescribeStatus(int status);

}  // namespace regatta::data
