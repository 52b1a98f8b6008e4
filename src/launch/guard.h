// A small process that outlives a killed launcher just long enough to end what is left of its job: a kill -9 cannot be
// caught, and the kernel's death signal reaches children but not their children.
// Thread-safety: belongs to one thread.
#pragma once

#include <sys/types.h>

#include "base/status.h"
#include "launch/job_mark.h"

namespace regatta::launch {

class Guard {
 public:
  // Starts it; before any process of the job.
  static absl::StatusOr<Guard> Start(const JobMark& mark);
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  // Sends it home: the job is over.
  ~Guard();

  // Tells it of a process of the job that leads a group.
  void AddGroup(pid_t leader) const;

  pid_t pid() const { return pid_; }

 private:
  Guard(int pipe, pid_t pid) : pipe_(pipe), pid_(pid) {}

  int pipe_;
  pid_t pid_;
};

}  // namespace regatta::launch
