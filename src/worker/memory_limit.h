// The memory of a training process against runner.max_memory.
// Thread-safety: concurrent; the job is only read.
#pragma once

#include "base/status.h"
#include "worker/job.h"

namespace regatta::worker {

class MemoryLimit {
 public:
  explicit MemoryLimit(const Job& job) : job_(job) {}

  bool set() const { return job_.run.runner.max_memory > 0; }
  // RESOURCE_EXHAUSTED if the process holds more than the limit. Where one is set.
  absl::Status Check() const;
  // Logs what ids will cost, and how many fit. For a process that trains alone.
  void LogEstimate() const;

 private:
  const Job& job_;
};

}  // namespace regatta::worker
