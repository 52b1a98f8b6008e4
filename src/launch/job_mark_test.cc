#include "launch/job_mark.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace regatta::launch {
namespace {

constexpr uid_t kNobody = 65'534;

// As a process that has read credentials: its environment is nobody's to read. Ends when `pipe` does.
[[noreturn]] void Hide(int told, int pipe) {
  setpgid(0, 0);
  prctl(PR_SET_DUMPABLE, 0);
  char byte = 0;
  if (write(told, &byte, 1) != 1) _exit(2);
  while (read(pipe, &byte, 1) > 0) continue;
  _exit(0);
}

// In a process of its own: root may read everything.
int FindsHiddenProcess() {
  if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 10;
  int told[2], end[2];
  if (pipe(told) != 0 || pipe(end) != 0) return 11;
  const pid_t hidden = fork();
  if (hidden < 0) return 12;
  if (hidden == 0) {
    close(end[1]);
    Hide(told[1], end[0]);
  }
  char byte = 0;
  if (read(told[0], &byte, 1) != 1) return 13;
  JobMark mark;
  const bool before = !mark.Find().empty();
  mark.AddGroup(hidden);
  const bool found = mark.Find() == std::vector<pid_t>{hidden};
  const int ended = mark.End(std::chrono::milliseconds(0));
  int status = 0;
  close(end[1]);
  waitpid(hidden, &status, 0);
  if (before) return 14;
  if (!found) return 15;
  return ended == 1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 16;
}

TEST(JobMark, AProcessThatHidesItsEnvironmentIsFoundByItsGroup) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(FindsHiddenProcess());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace regatta::launch
