// A worker's hands on the servers' tables. Every method starts a request and returns; its Call tells when the servers
// have answered. Requests that touch the same rows are served in the order in which they were started.
// Thread-safety: all methods are concurrent.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/step.h"
#include "client/call.h"

namespace regatta::client {

// Which step a request belongs to. Sync servers answer a training pull of step t when all steps before t are applied.
struct StepTag {
  uint64_t pass = 0;
  uint64_t step = 0;
  base::StepKind kind = base::StepKind::kTrain;
};

// geo: the rounds of a pass that a change was learnt in, first to last, both included, counted from 1.
struct Rounds {
  uint64_t pass = 0;
  uint64_t first = 1;
  uint64_t last = 1;
};

class PsClient {
 public:
  virtual ~PsClient() = default;

  virtual int sparse_tables() const = 0;
  virtual int pull_width(int table) const = 0;  // floats of a row
  virtual int push_width(int table) const = 0;  // floats of a gradient
  virtual int64_t dense_size() const = 0;

  // out[i].row(j) = the row of keys[i].keys[j], pull_width floats. Keys and out belong to the call until it is done.
  virtual void Pull(const StepTag& tag, std::span<const base::TableKeys> keys,
                    std::span<const base::RowsView<float>> out, Call& call) = 0;
  virtual void PullDense(const StepTag& tag, std::span<float> out, Call& call) = 0;

  // The gradients of a step (grads.step is the servers' step), with the learning rates that it brings. What they view
  // may be reused when these return.
  virtual void Push(const base::StepGrads& grads, Call& call) = 0;
  virtual void PushDense(const base::StepGrads& grads, Call& call) = 0;

  // Adds differences to rows and dense parameters.
  virtual void Add(std::span<const base::TableGrads> differences, Call& call) = 0;
  virtual void AddDense(std::span<const float> differences, Call& call) = 0;
  // The same, but the servers move a row, and the dense parameters, by the mean of the differences of all workers that
  // bring one for a round.
  virtual void Combine(const Rounds& rounds, std::span<const base::TableGrads> differences, Call& call) = 0;
  virtual void CombineDense(const Rounds& rounds, std::span<const float> differences, Call& call) = 0;

  // The steps of a pass begin at tag.step, and `learnt` of its batches were learnt before (geo: or since, and are
  // exchanged now); no more steps of it come from this worker.
  virtual void BeginPass(const StepTag& tag, const base::DataPosition& learnt, Call& call) = 0;
  virtual void LeavePass(const StepTag& tag, Call& call) = 0;
};

}  // namespace regatta::client
