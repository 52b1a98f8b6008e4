// The trainer's whole view of the cluster. Every mode implements it. The unit is the step: Pull, compute, Commit.
// Thread-safety: one per worker process. Prefetch, Pull and Commit are concurrent over threads (StepKeys::thread); a
// step belongs to one thread. The others are called while no step is in flight.
// A failure in the background surfaces at the next call and in EndPass.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/step.h"

namespace regatta::comm {

// What a trainer has to know of a communicator.
struct Traits {
  bool prefetches = false;  // whether Prefetch starts anything; if not, the trainer takes no batch ahead of its turn
  int batches_a_push =
      1;  // consecutive batches that become one push: only between them is a pass without a part of one
};

// Floats of a sparse table's rows, as a pull gives them, and of its gradients, as a push brings them.
struct RowWidths {
  int pull = 0;
  int push = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  // The same while the object lives.
  virtual Traits traits() const = 0;
  // Of each sparse table. The same while the object lives; for a look before the first step.
  virtual std::vector<RowWidths> widths() const = 0;
  virtual absl::Status BeginPass(const base::PassKeys& keys) = 0;
  // The keys of the thread's next step are known, while its present one is not committed: starts what the mode's
  // contract allows.
  virtual absl::Status Prefetch(const base::StepKeys& keys) = 0;
  // Afterwards *rows views a row per key of every table, and the dense parameters, until the thread's Commit or its
  // next Pull. A step may pull again before its Commit, with other keys: its rows are as new as the mode's first pull
  // of the step may give them.
  virtual absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) = 0;
  // Hands over all that the step learnt. The views may be reused when it returns. INVALID_ARGUMENT if a learning rate
  // cannot be: nothing of the step is kept then.
  virtual absl::Status Commit(const base::StepGrads& grads) = 0;
  // Between two pushes, while no step is in flight: afterwards every earlier Commit of this worker is on the servers,
  // and in sync the step is applied when all workers have called it. The pass goes on.
  virtual absl::Status Flush() = 0;
  // This worker brings no more steps of the pass: nobody waits for one. EndPass, which follows, does it otherwise.
  virtual absl::Status LeavePass() = 0;
  // Afterwards every earlier Commit of this worker is visible to everyone.
  virtual absl::Status EndPass() = 0;
  // A step of this worker failed and will not be committed: threads that wait for it get `status`.
  virtual void Abort(const absl::Status& status) = 0;
};

}  // namespace regatta::comm
