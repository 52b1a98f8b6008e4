// One step at a time, for those who own their loop: take keys, pull rows, hand over gradients, commit. The trainer's
// loop stands on it, too.
//   stepper.BeginPass(keys);
//   stepper.BeginStep({.step = 7, .batch = 7});  // and so on, for each batch
//   rows = stepper.Pull(tables);
//   stepper.Commit(samples, gradients, dense);      // with a learning rate, if the loop has a schedule of its own
//   stepper.EndPass();
// Thread-safety: belongs to one training thread. BeginPass and EndPass are for one thread, while no step is in flight.
// Invariant: a step is committed once at most, with one gradient for each key of a table.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/raw_vector.h"
#include "base/status.h"
#include "base/step.h"
#include "comm/communicator.h"
#include "metrics/trace.h"

namespace regatta::train {

// Which step it is.
struct StepPlace {
  base::StepKind kind = base::StepKind::kTrain;
  uint64_t step = 0;  // counts the batches of the job
  uint64_t pass = 0;
  uint64_t batch = 0;  // of the pass
};

class Stepper {
 public:
  // kOne: a step pulls once, and its rows are used where the communicator has them. kSeveral: a step may pull again
  // before its commit; rows are copied, so that those of an earlier pull stay. kInTurn: a step may pull again, and the
  // rows of an earlier pull are gone then; nothing is copied.
  enum class Pulls : uint8_t { kOne, kSeveral, kInTurn };
  // What a commit does with gradients that hold NaN or Inf. kCount: they are sent, and what becomes of them the mode
  // decides, by its NanPolicy. kRefuse: the commit is an error, and nothing is sent.
  enum class BadGradients : uint8_t { kCount, kRefuse };

  Stepper(comm::Communicator& communicator, int thread, Pulls pulls = Pulls::kOne, metrics::Tracer* tracer = nullptr,
          BadGradients bad = BadGradients::kCount)
      : communicator_(communicator), thread_(thread), pulls_(pulls), tracer_(tracer), bad_gradients_(bad) {}

  absl::Status BeginPass(const base::PassKeys& keys) { return communicator_.BeginPass(keys); }
  // Afterwards every earlier Commit of this worker is visible to everyone.
  absl::Status EndPass();

  // Whether Prefetch starts anything in this mode.
  bool prefetches() const;
  // The keys of the thread's next step, while its present one is not committed. The step's first Pull has the same
  // keys.
  absl::Status Prefetch(const StepPlace& next, std::span<const base::TableKeys> tables);

  // A step that was begun and not committed is given up.
  void BeginStep(const StepPlace& place);
  // A row for each key of every table, until the step's Commit (in inference: the next BeginStep; with Pulls::kInTurn:
  // the next Pull), and the dense parameters, until then or the next Pull. FAILED_PRECONDITION for a second pull with
  // Pulls::kOne.
  absl::StatusOr<base::StepRows> Pull(std::span<const base::TableKeys> tables);
  // Gradients are sums over `samples`. A table may come several times, for instance once for each Pull; the gradients
  // of a key are added up. A table's gradients may bring the learning rate that they are applied with, in place of the
  // table's schedule, the dense ones `dense_learning_rate`. FAILED_PRECONDITION if the step has not pulled, was
  // committed or is one of inference, or for bad gradients with kRefuse; INVALID_ARGUMENT if a learning rate cannot
  // be. A commit that is an error has sent nothing, and the step is given up.
  // `dense` covers every dense parameter, or is empty: nothing was learnt of them. A commit of 0 samples brings
  // nothing at all: workers that wait for the step go on.
  absl::Status Commit(uint32_t samples, std::span<const base::TableGrads> tables,
                      std::span<const base::DenseGrad> dense, std::optional<float> dense_learning_rate = {});

  // Of each sparse table.
  std::vector<comm::RowWidths> widths() const { return communicator_.widths(); }

  // Of the present step, in the communicator.
  double pull_seconds() const { return pull_seconds_; }
  double commit_seconds() const { return commit_seconds_; }
  // Gradients of the last commit with NaN or Inf, of one that was refused for them too.
  uint64_t bad_rows() const { return bad_rows_; }
  bool bad_dense() const { return bad_dense_; }

 private:
  // The rows of one pull.
  struct Copies {
    std::vector<base::RawVector<float>> rows;
    std::vector<base::RowsView<const float>> views;
  };
  // A table whose gradients came in several parts.
  struct Sum {
    std::vector<base::Key> keys;
    std::vector<uint32_t> shard_begin;
    std::vector<float> grads;
  };
  enum class State : uint8_t { kIdle, kBegun, kPulled };

  void Keep(std::span<const base::TableKeys> tables, base::StepRows* rows);
  static absl::StatusOr<base::TableGrads> AddUp(std::span<const base::TableGrads* const> parts, Sum& sum);
  absl::StatusOr<std::span<const base::TableGrads>> OneForEachTable(std::span<const base::TableGrads> tables);
  void CountBad(std::span<const base::TableGrads> tables, std::span<const base::DenseGrad> dense);

  comm::Communicator& communicator_;
  const int thread_;
  const Pulls pulls_;
  metrics::Tracer* const tracer_;
  const BadGradients bad_gradients_;
  StepPlace place_;
  State state_ = State::kIdle;
  size_t pulls_done_ = 0;
  std::vector<Copies> copies_;  // of each pull of a step, with Pulls::kSeveral
  std::vector<Sum> sums_;
  std::vector<base::TableGrads> merged_;
  double pull_seconds_ = 0;
  double commit_seconds_ = 0;
  uint64_t bad_rows_ = 0;
  bool bad_dense_ = false;
};

}  // namespace regatta::train
