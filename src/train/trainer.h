// Runs a pass over a dataset with T threads: Next, Pull, Forward, Backward, Commit, and the observer's AfterStep. The
// mode is the communicator's matter, the mathematics the net's.
// Thread-safety: one pass at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/step.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "metrics/trace.h"
#include "train/net.h"
#include "train/step_runner.h"

namespace regatta::train {

struct PassEnd {
  base::DataPosition position;
  bool complete = false;  // false: stopped before the last batch
};

// What the trainer tells, and what it may be asked to do. Calls never overlap.
class PassObserver {
 public:
  enum class StepAction : uint8_t {
    kGoOn,
    kPause,  // finish the steps in flight, and the batches of a push, call AtPause, go on
    kStop    // finish the steps in flight and end the pass
  };
  struct Step {
    const StepResult& result;
    const base::DataPosition& position;  // of everything committed, this step included
    double read_seconds;                 // waited for the batch
    double step_seconds;
  };

  virtual ~PassObserver() = default;
  virtual StepAction AfterStep(const Step& step) = 0;
  // No step is in flight and all that was learnt is pushed: tables and position are one consistent state. Not called
  // where the data ends before.
  virtual absl::Status AtPause(const base::DataPosition& position) = 0;
  // This worker brings no more steps of the pass, because its data has ended or it was stopped; others may.
  virtual absl::Status AtEnd(const PassEnd& end) = 0;
  // A step failed with a loss that is not a number.
  virtual absl::Status OnBadLoss(const data::Batch& batch, absl::Status status) = 0;
  // Whether the pass ends here. Asked while no step is in flight: before the first, and after a pause.
  virtual bool StopsHere() = 0;
  // Whether the pass is to end though the next batch has not come. Asked by threads that wait for data, several at a
  // time and also beside the other calls.
  virtual bool StopAsked() = 0;
};

struct TrainerOptions {
  int threads = 1;
  double clip_by_norm = 0;
  metrics::Tracer* tracer = nullptr;
};

class Trainer {
 public:
  // Every thread gets a net of its own from `nets`.
  Trainer(NetMaker nets, comm::Communicator& communicator, const TrainerOptions& options);

  // Trains on (or infers) every batch of the pass that `done` does not contain; `first_step` is the step number of the
  // pass's batch 0. In inference batches may lack labels: their samples are predicted, without a loss.
  absl::StatusOr<PassEnd> RunPass(data::Dataset& dataset, base::StepKind kind, const base::DataPosition& done,
                                  uint64_t first_step, PassObserver& observer);

 private:
  class Pass;
  absl::Status MakeRunners();

  const NetMaker nets_;
  comm::Communicator& communicator_;
  const TrainerOptions options_;
  std::vector<std::unique_ptr<StepRunner>> runners_;  // one for each thread, from the first pass on
};

}  // namespace regatta::train
