// A process that the launcher starts: in a process group of its own, its output in a log file, ended by the kernel when
// the launcher dies.
// Thread-safety: belongs to one thread; the launcher must have only one, because the kernel ties a child's death signal
// to the thread that forked it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace regatta::launch {

struct ChildProgram {
  std::vector<std::string> argv;         // argv[0] is the path
  std::vector<std::string> environment;  // "NAME=value"
  std::string log;                       // stdout and stderr
  bool keep_log = false;                 // it goes on behind what is there, rather than anew
};

// Afterwards the program runs (its exec succeeded) as leader of a new process group, with default signals, nothing
// blocked and /dev/null as its input.
absl::StatusOr<pid_t> Start(const ChildProgram& program);

// Signals the process group of a child that has not been waited for.
void SignalGroup(pid_t leader, int signal);

// "exited with code 3", "was killed by signal 9 (SIGKILL)" of a status from waitpid.
std::string DescribeStatus(int status);
// By a signal other than those that tell a program to stop (SIGINT, SIGTERM, SIGHUP).
bool WasKilled(int status);
// The exit code that a shell would give: the code itself, or 128 + signal.
int ExitCodeOf(int status);

}  // namespace regatta::launch
