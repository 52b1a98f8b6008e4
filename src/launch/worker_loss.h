// What a job does about a worker that is killed.
// Thread-safety: plain values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/job_policy.h"

namespace regatta::launch {

struct WorkerLoss {
  // kAwait: it is started again while restarts are left. kShrink: the others go on without it, but for worker 0.
  base::LossPolicy policy = base::LossPolicy::kAwait;
  std::string why;  // of the other two: "runner.on_worker_loss: shrink"
};

// Of the configuration that the words of `regatta train` name; words[0] is "train". What cannot be parsed the processes
// refuse themselves.
using ReadWorkerLoss = std::function<WorkerLoss(const std::vector<std::string>& words)>;

}  // namespace regatta::launch
